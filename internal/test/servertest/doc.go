// Package servertest runs real servers for tests, each on a free loopback port and
// in a folder of its own: Redis, with the program that REDLATCH_REDIS_SERVER
// names, such as Valkey's; MariaDB; PostgreSQL, and PgBouncer before it; etcd;
// ZooKeeper, from the files of Debian's package. A Proxy does to connections what a
// network can do.
//
// Redis, OwnMariaDB, OwnPostgreSQL, OwnPgBouncer, OwnEtcd and OwnZooKeeper start servers
// that end with the test. MariaDB, PostgreSQL and PgBouncer return the address of one that all
// tests of a binary share: its TestMain calls Main. NewMariaDB,
// NewPostgreSQL, NewEtcd and NewZooKeeper are for tools: they return errors.
//
// A test fails if the program of its server is missing: a skipped test would look
// like a passed one.
package servertest
