// Package redis is a redlatch node over a Redis or Valkey server: the scripts,
// the keys, and what replies and errors mean. It imports no client library;
// packages rueidis and goredis below it each bring one.
//
// # On the wire
//
// The lock is the caller's name as a plain string key with an expiry, so that
// other Redlock clients exclude this one and are excluded by it. Beside it
// stands the fence, the highest token granted, under a key of its own in the
// same cluster slot, with an expiry too.
//
// # Caveats
//
// A server that may evict keys with an expiry can drop a lock: run it with
// maxmemory-policy noeviction. A server that restarts without its data has
// forgotten its locks.
package redis
