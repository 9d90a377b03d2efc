'use strict';
// A contender that uses npm's redis-semaphore; what it reads and writes is in
// worker/worker.go.
const readline = require('node:readline');
const Redis = require('ioredis');
const { Semaphore, RedlockSemaphore } = require('redis-semaphore');

// The clock that all processes share on Linux.
const now = () => Number(process.hrtime.bigint());
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const say = (lines) => new Promise((resolve) => process.stdout.write(lines.map((l) => JSON.stringify(l) + '\n').join(''), resolve));

let config;
let clients;

function semaphore(name) {
  // Its defaults but for the time to live: a try every 10 ms.
  const options = { lockTimeout: config.ttl_ms, onLockLost: () => {} };
  return clients.length === 1
    ? new Semaphore(clients[0], name, config.limit, options)
    : new RedlockSemaphore(clients, name, config.limit, options);
}

async function ready() {
  clients = config.addresses.map((address) => {
    const [host, port] = address.split(':');
    const client = new Redis({ host, port: Number(port) });
    client.on('error', () => {});
    return client;
  });
  const first = semaphore('warm/' + config.first);
  await first.acquire();
  await first.release();
  await say([{ ready: true }]);
}

async function follow(order) {
  const lines = [];
  const done = { done: true, errors: 0, error: '' };
  const failed = (what, err) => {
    done.errors++;
    done.error = done.error || `${what}: ${err && err.name}: ${err && err.message}`;
  };
  const wanted = semaphore(order.name);
  await sleep(Math.max(0, (order.start - now()) / 1e6));
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), Math.max(0, (order.end - now()) / 1e6));
  let called = now();
  while (now() < order.end) {
    try {
      await wanted.acquire(stop.signal);
    } catch (err) {
      if (stop.signal.aborted) {
        lines.push({ c: config.first, got: false, called, acquired: order.end });
        break;
      }
      failed('lock', err);
      await sleep(100 + Math.random() * 100);
      continue;
    }
    const acquired = now();
    await sleep(config.held_ms);
    const released = now();
    lines.push({ c: config.first, got: true, called, acquired, released });
    try {
      await wanted.release();
    } catch (err) {
      failed('release', err);
    }
    called = now();
  }
  clearTimeout(timer);
  await say(lines.concat([done]));
}

const input = readline.createInterface({ input: process.stdin });
let last = Promise.resolve();
input.on('line', (line) => {
  last = last.then(async () => {
    const read = JSON.parse(line);
    if (config) return follow(read);
    config = read;
    return ready();
  }).catch((err) => {
    console.error(err);
    process.exit(1);
  });
});
input.on('close', () => last.then(() => process.exit(0)));
