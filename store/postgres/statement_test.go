//go:build unix

package postgres_test

import (
	"fmt"
	"testing"

	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/store/postgres"
)

// TestStatementsArePreparedOnceOnASessionOfOurOwn has connections to the server
// itself, and through something that may share them with others.
func TestStatementsArePreparedOnceOnASessionOfOurOwn(t *testing.T) {
	server := servertest.OwnPostgreSQL(t)
	proxy := servertest.NewProxy(t, server)
	for name, c := range map[string]struct {
		dsn      string
		prepares bool
	}{
		"direct":  {server.DSN(), true},
		"a proxy": {server.Through(proxy.Addr()), false},
		"pooler":  {servertest.OwnPgBouncer(t, server.Addr()).DSN(), false},
	} {
		n, err := postgres.Open(c.dsn+"&pool_max_conns=1", &postgres.Options{Poll: true})
		must(t, err)
		defer n.Close()
		for i := range 3 { // the second name is inserted without a read
			useAll(t, n, fmt.Sprint(name, i))
		}
		first := postgres.Prepared(t, n)
		if c.prepares != (first > 0) {
			t.Errorf("%s: %d statements are prepared", name, first)
		}
		useAll(t, n, name+" again")
		if again := postgres.Prepared(t, n); again != first {
			t.Errorf("%s: %d statements are prepared, and then %d", name, first, again)
		}
	}
}

// TestSessionThatForgetsItsStatementsGoesOn has somebody else reset the session,
// and alter the table.
func TestSessionThatForgetsItsStatementsGoesOn(t *testing.T) {
	n, err := postgres.Open(servertest.PostgreSQL(t)+"&pool_max_conns=1", &postgres.Options{Poll: true, Table: "forgotten"})
	must(t, err)
	defer n.Close()
	for _, text := range []string{
		`SELECT 1`, `ALTER TABLE forgotten ADD COLUMN more int`, `ALTER TABLE forgotten ALTER version TYPE varchar(64)`,
		`ALTER TABLE forgotten ALTER version TYPE text`, `DROP TABLE forgotten`, `DISCARD ALL`,
	} {
		useAll(t, n, "before "+text)
		postgres.Execute(t, n, text)
		useAll(t, n, text)
	}
	if left := postgres.Prepared(t, n); left != 0 {
		t.Errorf("%d statements are prepared on a session that others reset", left)
	}
}
