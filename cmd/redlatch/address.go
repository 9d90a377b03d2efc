package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redlatch/redlatch/store/redis"
)

// checkAddresses rejects addresses of no known kind. It checks all of them
// before it parses any: a password with a comma splits an address in two, and
// an error must show neither half.
func checkAddresses(addresses []string) error {
	// If an address contains an @, another part may be a piece of a password.
	secret := slices.ContainsFunc(addresses, func(a string) bool { return strings.Contains(a, "@") })
	for i, a := range addresses {
		if kindOf(a) != "" {
			continue
		}
		if secret {
			return usageError(fmt.Errorf("address %d of the nodes does not begin like %s", i+1, addressForms),
				"write %2C for a comma that belongs to a password")
		}
		if len(strings.Fields(a)) > 1 {
			return usageError(fmt.Errorf("address %d of the nodes is %q: there is a space in it", i+1, a), "separate addresses by a comma")
		}
		if _, err := redis.ParseAddress("redis://" + a); err == nil {
			return usageError(fmt.Errorf("address %d of the nodes is %q: it has no scheme", i+1, a),
				fmt.Sprintf("write redis://%s, or rediss://%s with TLS", a, a))
		}
		return usageError(fmt.Errorf("address %d of the nodes is %q: it does not begin like %s", i+1, a, addressForms), "see redlatch help nodes")
	}
	return nil
}

// strayAddress is the outcome of a command line with a misplaced address: after
// a space instead of a comma. It is nil if there is none.
func strayAddress(args []string) error {
	if !slices.ContainsFunc(args, func(a string) bool { return kindOf(a) != "" && kindOf(a) != "sqlite" && strings.Contains(a, "://") }) {
		return nil
	}
	return usageError(errors.New("an address of a node is in the place of a name"), "separate addresses by a comma: --nodes redis://a,redis://b")
}

// nodesHelp is the text of redlatch help nodes. It is also a section of docs/stores.md.
const nodesHelp = `Give the addresses of the nodes in --nodes, in REDLATCH_NODES or in the settings
file, separated by commas. Every client must list the same nodes, and the same members
of a node that has several: another subset is another membership. In a shell, quote
an address that contains & or ?.

A Redis or Valkey server: user, password, host, port (default 6379) and database
(default 0). Write %2C for a comma in a password, %40 for an @, %2F for a slash, %3A
for a colon. Better keep it in a file (--password-file) or in REDLATCH_PASSWORD,
where ps does not show it: these are used for each address without a password.

  redis://redis-1.example.com
  redis://[2001:db8::7]:6380/2
  redis://locker@redis-1.example.com
  redis://locker:secret@redis-1.example.com
  redis://:secret@redis-1.example.com

On Linux a caller that is alone on a plain connection to the only server reads its
own reply, which is faster. caller_reads=off leaves all replies to the goroutine of
the connection.

  redis://redis-1.example.com?caller_reads=off

With TLS: rediss, with an s. tls_ca is a file with the certificates to trust, if not
the system's; tls_cert and tls_key are the client's certificate; tls_server_name is
the name in the server's certificate, if it is not the host. All are in PEM form.

  rediss://redis-1.example.com:6380
  rediss://10.0.0.7?tls_ca=/etc/redlatch/ca.pem&tls_server_name=redis-1.example.com
  rediss://locker@10.0.0.7?tls_cert=/etc/redlatch/client.pem&tls_key=/etc/redlatch/client-key.pem

A master behind Sentinel: the sentinels (default port 26379) separated by a plus, the
master's name, and the database. User and password are those of the servers. This is
one node. So is a Redis Cluster: some of its servers, separated by a plus.

  redis+sentinel://s1.example.com+s2.example.com+s3.example.com/mymaster
  redis+sentinel://locker@s1:26379+s2:26379/mymaster/2?sentinel_user=watch&sentinel_password=secret
  rediss+sentinel://s1+s2+s3/mymaster?tls_ca=/etc/redlatch/ca.pem
  redis+cluster://c1.example.com:7000+c2.example.com:7000
  rediss+cluster://locker@c1+c2+c3?tls_ca=/etc/redlatch/ca.pem

A table in a PostgreSQL, MySQL or MariaDB database: user, host, port (default 5432 or
3306) and database. The first use creates the table redlatch_lock, or the one that
table=NAME or, for PostgreSQL, table=SCHEMA.NAME names. PostgreSQL also takes the
parameters and environment of libpq, such as sslmode; poll=true saves the connection
for notifications. MySQL takes tls (true or skip-verify) and socket.

  postgres://locks@db.example.com:6432/app?sslmode=verify-full&table=ops.locks
  mysql://locks@db.example.com/app?tls=true
  mysql://locks@/app?socket=/run/mysqld/mysqld.sock

An etcd cluster is one node: its members (default port 2379), separated by a
plus, and what the keys begin with (default redlatch). With TLS: etcds, with the same
parameters as rediss. poll=true watches nothing.

  etcd://e1.example.com+e2.example.com+e3.example.com
  etcd://locks@e1:2379+e2:2379+e3:2379/ops
  etcds://e1+e2+e3?tls_ca=/etc/redlatch/ca.pem

A ZooKeeper ensemble is one node: its servers (default port 2181), separated by a plus,
and the znode below which locks are (default /redlatch), whose parent must exist. User
and password are those of digest authentication; the znodes then belong to that user.
With TLS: zookeepers, with the same parameters as rediss. session=10s is the timeout of
the session, and maxbuffer the servers' jute.maxbuffer. poll=true watches nothing.

  zookeeper://z1.example.com+z2.example.com+z3.example.com
  zookeeper://locks@z1:2181+z2:2181+z3:2181/apps/locks
  zookeepers://z1:2281+z2:2281+z3:2281?tls_ca=/etc/redlatch/ca.pem

A file on this machine. A lock in it excludes only processes of this machine. Without
an address locks are in a file of this user, and a line on stderr says so; the address
local selects this file explicitly.

  sqlite:/var/lib/redlatch/locks.db

Three or five independent servers tolerate the loss of one or two. They may be of
different kinds. Mark them once with redlatch init, and check them with redlatch
doctor:

  export REDLATCH_NODES=redis://a:6379,redis://b:6379,redis://c:6379
  redlatch init`
