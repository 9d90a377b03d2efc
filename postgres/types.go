package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// types are those of our parameters, with the type that each has in the database.
var types = []struct {
	value any
	name  string
}{
	{"", "text"}, {[]string(nil), "_text"}, {[]byte(nil), "bytea"}, {0, "int8"}, {int64(0), "int8"}, {time.Time{}, "timestamptz"},
}

// registerTypes names our types to a connection. Package pgx knows them and very
// many others, unless it is built with the tag nopgxregisterdefaulttypes, as the
// command is for a release: that leaves out a million bytes.
func registerTypes(_ context.Context, conn *pgx.Conn) error {
	for _, t := range types {
		conn.TypeMap().RegisterDefaultPgType(t.value, t.name)
	}
	return nil
}
