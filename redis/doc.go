// Package redis is a redlatch node over a Redis or Valkey server: the scripts,
// the keys, and what replies and errors mean. It imports no client library;
// packages rueidis and goredis below it each bring one.
//
// # On the wire
//
// The lock is the caller's name as a plain string key with an expiry, so that
// other Redlock clients exclude this one and are excluded by it. Beside it
// stands the fence, the highest token granted, under a key of its own in the
// same cluster slot, with an expiry too; and while somebody waits for it, the
// queue, a sorted set, and the turn, which says what its head was told. Each
// process that waits listens to one channel, redlatch:1:inbox:ID. With the guard on each server also
// carries a marker, redlatch:1:marker, without one; in a cluster each slot has
// its own.
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
// in one line. PUBLISH and SUBSCRIBE are for waking those who wait: without them
// they ask again and again. To list locks takes +scan +zcard besides. INFO is
// for the guard, and for finding one server under two
// addresses; SELECT for addresses with a database. A cluster needs
// +cluster|slots besides (from Redis 8 on +cluster|shards with rueidis, and
// +command with goredis), servers behind Sentinel +role with rueidis.
//
// # Caveats
//
// A server that may evict keys with an expiry can drop a lock, and the guard
// does not see it: run it with maxmemory-policy noeviction.
//
// Redis expires keys by its wall clock: one that is set forward ends locks
// early.
//
// A server that restarted or was promoted sits out if the guard is on, whatever
// it remembers. It also does so once when its first replica is attached, and
// when the replication backlog is freed after the last one has gone. With the
// guard off, a server that restarts without its data has forgotten its locks
// and grants them again.
//
// The guard asks INFO inside the scripts. A server that forbids it to the user
// grants nothing then.
//
// A master with replicas, a Sentinel group and a Cluster are each one node: a
// failover can lose the last writes, so they are no majority by themselves.
package redis
