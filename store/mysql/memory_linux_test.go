package mysql_test

import (
	"testing"

	"github.com/redlatch/redlatch/internal/test/rowtest"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node/casnode"
)

// TestWritesWithoutARead has requests that nobody contends for.
func TestWritesWithoutARead(t *testing.T) {
	for schema, s := range map[string]*servertest.Database{"information_schema": servertest.NewMariaDB(), "performance_schema": servertest.NewMySQL()} {
		t.Run(s.Name, func(t *testing.T) {
			server, clock := servertest.OwnWithClock(t, s)
			rowtest.Memory{
				Server: server, Clock: clock,
				Open:       func(t testing.TB, dsn string) *casnode.Node { return opened(t, dsn).Node },
				Driver:     "mysql",
				Statements: `SELECT variable_value FROM ` + schema + `.global_status WHERE variable_name = 'Questions'`,
			}.Run(t)
		})
	}
}
