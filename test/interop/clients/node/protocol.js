'use strict';
// Takes orders, one a line, and answers each with one line; see drive/drive.go.
const readline = require('node:readline');

// brief makes one line of an error, with those of the single servers.
function brief(err) {
  const parts = [err.name, err.message];
  for (const inner of err.attempts ? [] : err.errors || []) parts.push(inner && inner.message);
  return parts.filter(Boolean).join(': ').replace(/\s+/g, ' ');
}

// serve answers orders with lock: {acquire(name, ms), extend(ms), release()},
// each of which resolves to the word of its answer.
exports.serve = function serve(version, lock) {
  const input = readline.createInterface({ input: process.stdin });
  let last = Promise.resolve();
  input.on('line', (line) => {
    const [verb, ...rest] = line.trim().split(/\s+/);
    last = last.then(async () => {
      try {
        const args = verb === 'acquire' ? [rest[0], Number(rest[1])] : rest.map(Number);
        console.log(await lock[verb](...args));
      } catch (err) {
        console.log('error ' + brief(err));
      }
    });
  });
  input.on('close', () => last.then(() => process.exit(0)));
  console.log('ready ' + version);
};

// connect returns an ioredis client for each host:port on the command line.
exports.connect = function connect() {
  const Redis = require('ioredis');
  return process.argv.slice(2).map((address) => {
    const [host, port] = address.split(':');
    const client = new Redis({ host, port: Number(port), maxRetriesPerRequest: 1 });
    client.on('error', () => {});
    return client;
  });
};

// version returns that of an installed package.
exports.version = function version(name) {
  const fs = require('node:fs');
  const path = require('node:path');
  return JSON.parse(fs.readFileSync(path.join(process.env.NODE_PATH, name, 'package.json'))).version.replace(/^v/, '');
};
