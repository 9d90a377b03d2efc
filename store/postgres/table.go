package postgres

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/redlatch/redlatch/internal/sqltable"
	"github.com/redlatch/redlatch/store/casnode"
)

// quote returns a table's name with its schema, and the same in quotes. Without a
// schema it is the same table for all users of the database, whatever their search
// path.
func quote(table string) (name, quoted string, err error) {
	name = cmp.Or(table, sqltable.Default)
	quoted, err = sqltable.Quote(name, `"`, "schema")
	if !strings.Contains(name, ".") {
		name, quoted = "public."+name, `"public".`+quoted
	}
	return name, quoted, err
}

// channelPrefix returns what the names of the channels for notifications about a table
// begin with. With the process they are shorter than the 63 bytes that are allowed.
func channelPrefix(table string) string {
	sum := sha256.Sum256([]byte(strings.ToLower(table)))
	return "redlatch_" + hex.EncodeToString(sum[:8])
}

// channelOf returns the channel of the program that a process is part of.
func (s *store) channelOf(process string) string {
	return s.channel + "_" + process[:min(casnode.ProgramSize, len(process))]
}

// Schema returns the statements that create a table, and the rights that a user
// of locks needs.
func Schema(table string) (string, error) {
	_, table, err := quote(table)
	if err != nil {
		return "", err
	}
	schema, _, _ := strings.Cut(table, ".")
	return create(table) + ";\n" + createPlaces(placesOf(table)) + fmt.Sprintf(`;
GRANT USAGE ON SCHEMA %s TO locks;
GRANT SELECT, INSERT, UPDATE, DELETE ON %s, %s TO locks;
GRANT EXECUTE ON FUNCTION pg_control_system() TO locks;
`, schema, table, placesOf(table)), nil
}

// create is the statement that creates the table. Rows are replaced all the
// time: with room in each page they stay in it, and no index is written.
func create(table string) string {
	return `CREATE TABLE IF NOT EXISTS ` + table + ` (
	name    bytea PRIMARY KEY,
	version text NOT NULL,
	state   bytea NOT NULL
)` + storage
}

const storage = ` WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000)`

// createPlaces is the statement that creates the table of places.
func createPlaces(table string) string {
	return `CREATE TABLE IF NOT EXISTS ` + table + ` (
	name    bytea NOT NULL,
	ticket  bigint NOT NULL,
	waiter  text COLLATE "C" NOT NULL,
	process text NOT NULL,
	lapses  bigint NOT NULL,
	PRIMARY KEY (name, ticket, waiter)
)` + storage
}

// needs are what locks depend on, in the words of check.
var needs = []sqltable.Need{
	{Part: "kind", Is: "table"}, {Part: "key", Is: "(name)"},
	{Part: "column name", Is: "bytea"}, {Part: "column version", Is: "text"}, {Part: "column state", Is: "bytea"},
}

// placeNeeds are what places depend on. Without the key a write is refused.
var placeNeeds = []sqltable.Need{
	{Part: "kind", Is: "table"}, {Part: "column name", Is: "bytea"}, {Part: "column ticket", Is: "int8"},
	{Part: "column waiter", Is: "text"}, {Part: "column process", Is: "text"}, {Part: "column lapses", Is: "int8"},
}

// errShape is the error for a table that create did not make.
var errShape = errors.New("make the table as redlatch schema postgres prints it")

// Prepare creates the table, if it is not there, and compares it with what
// locks need.
func (s *store) Prepare(ctx context.Context) error {
	exists, err := s.check(ctx)
	if exists || err != nil {
		return err
	}
	// Of two that create one at once one may be refused, with one of several
	// errors. Then the table is there now, and the other one may not be.
	_, failed := s.query(ctx, create(s.table))
	if _, err := s.query(ctx, createPlaces(s.places)); failed == nil {
		failed = err
	}
	if exists, err = s.check(ctx); exists || err != nil {
		return err
	}
	return fmt.Errorf("%w: the table %s is missing and cannot be created: create it by hand (redlatch schema postgres), or have all clients name a table in a schema that this user may write to (table=SCHEMA.NAME)", failed, s.table)
}

// check reports whether the tables exist. If one does, and has another shape than
// it needs, the error says what differs.
func (s *store) check(ctx context.Context) (exist bool, err error) {
	if exist, err = s.checkTable(ctx, s.table, needs); exist && err == nil {
		exist, err = s.checkTable(ctx, s.places, placeNeeds)
	}
	return exist, err
}

func (s *store) checkTable(ctx context.Context, table string, needs []sqltable.Need) (exists bool, err error) {
	rows, err := s.query(ctx, fmt.Sprintf(`SELECT 'kind', CASE WHEN relkind IN ('r', 'p') THEN 'table' WHEN relkind IN ('v', 'm') THEN 'view' ELSE relkind::text END
			FROM pg_class WHERE oid = to_regclass('%[1]s')
		UNION ALL SELECT 'key', '(name)' FROM pg_index i JOIN pg_attribute k ON k.attrelid = i.indrelid AND k.attnum = i.indkey[0]
			WHERE i.indrelid = to_regclass('%[1]s') AND i.indisunique AND i.indisvalid AND i.indimmediate
			AND i.indpred IS NULL AND i.indexprs IS NULL AND i.indnkeyatts = 1 AND k.attname = 'name'
		UNION ALL SELECT 'column ' || a.attname, t.typname FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
			WHERE a.attrelid = to_regclass('%[1]s') AND a.attnum > 0 AND NOT a.attisdropped
		UNION ALL SELECT 'subscription', '' FROM pg_subscription_rel WHERE srrelid = to_regclass('%[1]s')`, table))
	if err != nil || len(rows) == 0 {
		return false, explain(err)
	}
	has := map[string]string{}
	for _, row := range rows {
		has[string(row[0])] = string(row[1])
	}
	if _, follows := has["subscription"]; follows {
		return true, fmt.Errorf("a subscription fills the table %s from another server: give the address of that one, or if this one has taken its place, drop the subscription", table)
	}
	return true, sqltable.Check(table, "postgres", needs, has)
}
