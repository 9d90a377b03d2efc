// Package redis is a redlatch node over a Redis or Valkey server: the scripts,
// the keys, and what replies and errors mean. Packages below it are the drivers:
// direct needs no client library, rueidis and goredis each bring one.
//
// # On the wire
//
// The lock is the caller's name as a plain string key with an expiry, so that
// other Redlock clients exclude this one and are excluded by it. Readers and
// holders of slots are a group: the key has a header, redlatch-group-2, and the
// holders are in a sorted set beside it, each with its expiry, token and slot. No
// client takes a group for its own value, so none can delete it by that. The key
// expires with its last holder.
// Beside the lock is the fence, the highest token granted, under a key of its own
// in the same cluster slot, with an expiry too. It is one number of 20 digits;
// the holder's token follows if that is another one, and then the floor if readers
// have raised the fence above it. While somebody waits for the lock there are
// two more keys: the node queue, a sorted set, and the turn: who is its
// head, until when, and what it was notified of. Each Node subscribes to one
// channel, redlatch:1:inbox:ID, when somebody first waits through it. With the guard on each server also has a marker,
// redlatch:1:marker, without expiry; in a cluster each slot has its own.
//
// # Rights
//
// What a user must be allowed, for locks whose names begin with orders/:
//
//	ACL SETUSER locks reset on >PASSWORD resetchannels &redlatch:1:inbox:*
//		~orders/* ~redlatch:1:* +eval +evalsha +time +get +mget +set +del
//		+exists +pexpire +pttl +type +zadd +zrange +zrank +zrem +zscore
//		+publish +subscribe +info +client|setname +ping +select
//
// in one line. PUBLISH and SUBSCRIBE are for notifying waiters: without these
// rights waiters poll. To list locks takes +scan +zcard as well. INFO is for
// the guard, and for finding one server under two addresses; SELECT for
// addresses with a database. A cluster also needs +cluster|slots (from Redis 8
// on +cluster|shards with rueidis, and +command with goredis), servers behind
// Sentinel +role with rueidis.
//
// # Caveats
//
// A server that may evict keys with an expiry can drop a lock, and the guard
// does not notice: run it with maxmemory-policy noeviction.
//
// Redis expires keys by its wall clock: a clock that is set forward ends locks
// early.
//
// A server that restarted or was promoted is quarantined if the guard is on,
// even if it kept its data. It is also quarantined once when its first replica
// is attached, and when the replication backlog is freed after the last replica
// has gone. With the guard off, a server that restarts without its data has
// forgotten its locks and grants them again.
//
// The scripts read INFO for the guard. If the server forbids INFO to the user,
// by the guard it grants nothing.
//
// A master with replicas, a Sentinel group and a Cluster are each one node: a
// failover can lose the last writes, so they are no majority by themselves.
package redis
