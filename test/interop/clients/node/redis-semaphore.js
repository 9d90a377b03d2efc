'use strict';
const { serve, connect, version } = require('./protocol');
const { Mutex, RedlockMutex } = require('redis-semaphore');

const clients = connect();
let mutex;
let lost = false;

serve(version('redis-semaphore'), {
  async acquire(name, ms) {
    // acquireTimeout bounds the tries as well as their number does.
    const options = { lockTimeout: ms, acquireTimeout: 5000, acquireAttemptsLimit: 1, retryInterval: 1,
      onLockLost: () => { lost = true; } };
    const next = clients.length === 1 ? new Mutex(clients[0], name, options) : new RedlockMutex(clients, name, options);
    if (!(await next.tryAcquire())) return 'held';
    mutex = next;
    lost = false;
    return 'ok';
  },
  extend: async () => 'cannot', // it refreshes by itself
  async release() {
    const was = lost;
    await mutex.release();
    return was ? 'lost' : 'ok';
  },
});
