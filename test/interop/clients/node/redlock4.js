'use strict';
const { serve, connect, version } = require('./protocol');
const Redlock = require('redlock');

const redlock = new Redlock(connect(), { retryCount: 0 });
redlock.on('clientError', () => {});
let lock;

// taken tells "another has it" from a failure: the client has one error for
// both, with a text for each.
function taken(err) {
  return err.name === 'LockError';
}

serve(version('redlock'), {
  async acquire(name, ms) {
    try {
      lock = await redlock.lock(name, ms);
      return 'ok';
    } catch (err) {
      if (taken(err)) return 'held';
      throw err;
    }
  },
  async extend(ms) {
    try {
      lock = await lock.extend(ms);
      return 'ok';
    } catch (err) {
      if (taken(err)) return 'lost';
      throw err;
    }
  },
  async release() {
    try {
      await lock.unlock();
      return 'ok';
    } catch (err) {
      if (taken(err)) return 'lost';
      throw err;
    }
  },
});
