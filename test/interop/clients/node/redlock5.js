'use strict';
const { serve, connect, version } = require('./protocol');
const { default: Redlock, ExecutionError } = require('redlock');

const redlock = new Redlock(connect(), { retryCount: 0 });
redlock.on('error', () => {});
let lock;

// said gives an ExecutionError, which is all that a refusal is told by, its
// word.
async function said(word, act) {
  try {
    await act();
    return 'ok';
  } catch (err) {
    if (err instanceof ExecutionError) return word;
    throw err;
  }
}

serve(version('redlock'), {
  acquire: (name, ms) => said('held', async () => { lock = await redlock.acquire([name], ms); }),
  extend: (ms) => said('lost', async () => { lock = await lock.extend(ms); }),
  release: () => said('lost', () => lock.release()),
});
