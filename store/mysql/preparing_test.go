package mysql

import (
	"context"
	"database/sql/driver"
	"slices"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// fakeConn notes what is sent, and returns an error for what is prepared.
type fakeConn struct {
	plainConn
	prepare, execute error
	sent             []string
}

func (c *fakeConn) note(s string, err error) (driver.Result, error) {
	c.sent = append(c.sent, s)
	return nil, err
}

func (c *fakeConn) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return c.note("text", nil)
}

func (c *fakeConn) PrepareContext(context.Context, string) (driver.Stmt, error) {
	_, err := c.note("prepare", c.prepare)
	return fakeStmt{nil, c}, err
}

type fakeStmt struct {
	driver.Stmt
	c *fakeConn
}

func (s fakeStmt) ExecContext(context.Context, []driver.NamedValue) (driver.Result, error) {
	return s.c.note("execute", s.c.execute)
}

// TestStatementIsSentAsTextWhereItCannotBePrepared has servers that refuse to
// prepare, and proxies that have forgotten what was prepared.
func TestStatementIsSentAsTextWhereItCannotBePrepared(t *testing.T) {
	for name, c := range map[string]struct {
		prepare, execute error
		sent             []string
	}{
		"prepared":  {nil, nil, []string{"text", "prepare", "execute", "execute"}},
		"refused":   {&mysql.MySQLError{Number: 1461}, nil, []string{"text", "prepare", "text", "text"}},
		"forgotten": {nil, &mysql.MySQLError{Number: noStatement}, []string{"text", "prepare", "execute", "text", "text"}},
	} {
		fake := &fakeConn{prepare: c.prepare, execute: c.execute}
		conn := &preparing{plainConn: fake, statements: map[string]driver.Stmt{}}
		for range 3 {
			if _, err := conn.ExecContext(t.Context(), "DO ?", make([]driver.NamedValue, 1)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if !slices.Equal(fake.sent, c.sent) {
			t.Errorf("%s: %q was sent, want %q", name, fake.sent, c.sent)
		}
	}
}
