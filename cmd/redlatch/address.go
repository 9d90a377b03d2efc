package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

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
	if !slices.ContainsFunc(args, func(a string) bool { return kindOf(a) != "" && kindOf(a) != sqliteKind && strings.Contains(a, "://") }) {
		return nil
	}
	return usageError(errors.New("an address of a node is in the place of a name"), "separate addresses by a comma: --nodes redis://a,redis://b")
}

// newNodesTopic is the text of redlatch help nodes. It is no command.
func newNodesTopic() *cobra.Command {
	return &cobra.Command{Use: "nodes", Short: "How the addresses of nodes are written", Long: nodesHelp}
}

// nodesHelp is also a section of docs/stores.md.
const nodesHelp = `Give the addresses of the nodes in --nodes, in REDLATCH_NODES or in the settings
file, separated by commas. Every client must list the same nodes.

One Redis or Valkey server: host, port (default 6379) and number of the database
(default 0).

  redis://redis-1.example.com
  redis://10.0.0.7:6380/2
  redis://[2001:db8::7]:6379

With a user and a password, or a password alone. Write %2C for a comma in them,
%40 for an @, %2F for a slash, %3A for a colon. Better keep the password in a file
(--password-file) or in REDLATCH_PASSWORD, where ps does not show it. It is used
for each address without a password.

  redis://locker:secret@redis-1.example.com
  redis://:secret@redis-1.example.com
  redis://locker@redis-1.example.com

With TLS: rediss, with an s. The system's certificates are trusted, unless tls_ca
names a file with others. tls_cert and tls_key are the client's certificate, if the
server asks for one. tls_server_name is the name in the server's certificate, if it
differs from the host. The files are in PEM form.

  rediss://redis-1.example.com:6380
  rediss://10.0.0.7?tls_ca=/etc/redlatch/ca.pem&tls_server_name=redis-1.example.com
  rediss://locker@10.0.0.7?tls_ca=/etc/redlatch/ca.pem&tls_cert=/etc/redlatch/client.pem&tls_key=/etc/redlatch/client-key.pem

In a shell, quote an address that contains & or ?.

A master behind Sentinel: the sentinels (default port 26379) separated by a plus,
the master's name, and the database. User and password are for the servers;
sentinel_user and sentinel_password are for the sentinels. Together this is one
node.

  redis+sentinel://s1.example.com+s2.example.com+s3.example.com/mymaster
  redis+sentinel://locker:secret@s1:26379+s2:26379/mymaster/2?sentinel_user=watch&sentinel_password=secret
  rediss+sentinel://s1+s2+s3/mymaster?tls_ca=/etc/redlatch/ca.pem

A Redis Cluster: some of its servers, separated by a plus. This is one node, too.

  redis+cluster://c1.example.com:7000+c2.example.com:7000
  rediss+cluster://locker@c1+c2+c3?tls_ca=/etc/redlatch/ca.pem

A table in a PostgreSQL, MySQL or MariaDB database: user, host, port (default 5432
or 3306) and database. The first use creates the table; redlatch schema prints the
statements to create it by hand. table=NAME selects a table other than
redlatch_lock. In PostgreSQL it is in the schema public, unless table=SCHEMA.NAME
names another one. PostgreSQL also takes the parameters and environment of libpq,
such as sslmode; poll=true saves the connection for notifications. MySQL takes tls
(true or skip-verify) and socket, for a server on this machine.

  postgres://locks@db.example.com/app
  postgres://locks@db.example.com:6432/app?sslmode=verify-full&table=ops.locks
  mysql://locks@db.example.com/app?tls=true
  mysql://locks@/app?socket=/run/mysqld/mysqld.sock

A file on this machine, by its path:

  sqlite:/var/lib/redlatch/locks.db

Without an address, locks are in a file of this user, and a line on stderr says so.
The address local selects this file explicitly. --state FILE names another file. A
lock in a file excludes only processes of the same machine.

Three or five independent servers tolerate the loss of one or two. They may be of
different kinds. Mark them once with redlatch init, and check them with redlatch
doctor:

  export REDLATCH_NODES=redis://a:6379,redis://b:6379,redis://c:6379
  redlatch init
  redlatch doctor`
