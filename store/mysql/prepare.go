package mysql

import (
	"context"
	crand "crypto/rand"
	"database/sql"
	"fmt"
	"strings"

	"github.com/redlatch/redlatch/internal/sqltable"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/casnode"
)

// create is the statement that creates the table.
func create(table string) string {
	return `CREATE TABLE IF NOT EXISTS ` + table + ` (
	name    VARBINARY(1024) NOT NULL PRIMARY KEY,
	version VARBINARY(32) NOT NULL,
	state   MEDIUMBLOB NOT NULL
) ENGINE = InnoDB`
}

// createPlaces is the statement that creates the table of places.
func createPlaces(table string) string {
	return `CREATE TABLE IF NOT EXISTS ` + table + ` (
	name    VARBINARY(1024) NOT NULL,
	ticket  BIGINT NOT NULL,
	waiter  VARBINARY(400) NOT NULL,
	process VARBINARY(32) NOT NULL,
	lapses  BIGINT NOT NULL,
	PRIMARY KEY (name, ticket, waiter)
) ENGINE = InnoDB`
}

// Prepare creates the tables, if they are not there, and checks server and tables.
func (s *store) Prepare(ctx context.Context) error {
	conn, err := s.conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	var version string
	if err := conn.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version); err != nil {
		return err
	}
	p := &prepared{dialect: dialectOf(version)}
	c := session{prepared: p, Conn: conn}
	var fitness string
	for _, p.fit = range []string{p.quick, p.fitness} {
		if err := c.queryRow(ctx, "SELECT "+p.server+", "+p.fit).Scan(&p.id, &fitness); err != nil {
			return explain(err)
		}
		if fitness != "replicated" {
			break
		}
	}
	p.texts = p.statements(s.table, s.places, p.fit)
	if err := s.checkFitness(ctx, conn, withoutTable(fitness)); err != nil {
		return err
	}
	if p.blind, err = p.checkSources(ctx, conn); err != nil {
		return err
	}
	one, err := s.provide(ctx, c, s.table, create(s.table), needs)
	if err == nil {
		_, err = s.provide(ctx, c, s.places, createPlaces(s.places), placeNeeds)
	}
	if err != nil {
		return err
	}
	if one == 0 {
		_, err := c.exec(ctx, p.first, crand.Text(), casnode.Unmarked())
		if err != nil && number(err) != duplicate { // another client was first
			return explain(err)
		}
	}
	s.prepared.Store(p)
	return nil
}

// provide creates a table, if it is not there, and checks it. It returns how many rows
// of the empty name it has.
func (s *store) provide(ctx context.Context, c session, table, create string, needs []sqltable.Need) (n int, err error) {
	err = c.queryRow(ctx, "SELECT COUNT(*) FROM "+table+" WHERE name = x''").Scan(&n)
	if number(err) == noTable {
		if _, err := c.ExecContext(ctx, create); err != nil {
			return n, fmt.Errorf("%w: the table %s is missing and cannot be created: create it by hand (redlatch schema mysql)", err, table)
		}
	} else if err != nil && number(err) != unknownColumn {
		return n, explain(err)
	}
	return n, checkShape(ctx, c.Conn, table, needs)
}

// checkSources returns an error if the server is set up to replicate from another
// one: it may be a replica that was stopped, or whose replication failed. blind
// says that the user may not see that.
func (d *dialect) checkSources(ctx context.Context, c *sql.Conn) (blind bool, err error) {
	rows, err := c.QueryContext(ctx, d.sources)
	switch number(err) {
	case needsRight, denied:
		return true, nil
	}
	if err != nil {
		return false, explain(err)
	}
	defer rows.Close()
	if !rows.Next() {
		return false, explain(rows.Err())
	}
	return false, fmt.Errorf("this server is set up to replicate from another one: give the address of the primary, or if it has taken that one's place, execute %s (%w)",
		d.forget, node.ErrUnsent)
}

// needs are what locks depend on, in the words of shape.
var needs = []sqltable.Need{
	{Part: "engine", Is: "InnoDB"}, {Part: "primary key", Is: "(name)"},
	{Part: "column name", Is: "varbinary(1024)"}, {Part: "column version", Is: "varbinary(32)"},
	{Part: "column state", Is: "mediumblob or longblob"},
}

// placeNeeds are what places depend on.
var placeNeeds = []sqltable.Need{
	{Part: "engine", Is: "InnoDB"}, {Part: "primary key", Is: "(name, ticket, waiter)"},
	{Part: "column name", Is: "varbinary(1024)"}, {Part: "column ticket", Is: "bigint"}, {Part: "column waiter", Is: "varbinary(400)"},
	{Part: "column process", Is: "varbinary(32)"}, {Part: "column lapses", Is: "bigint"},
}

// shape asks for the engine of a table, its primary key, and its columns. Each row
// of the answer has a part and what it is. A column that is longer than it need be
// passes for one that is as long.
const shape = `SELECT 'engine', COALESCE(engine, LOWER(table_type)) FROM information_schema.tables WHERE IS_IT
	UNION ALL SELECT 'primary key', CONCAT('(', GROUP_CONCAT(IF(sub_part IS NULL, LOWER(column_name), CONCAT(column_name, '(', sub_part, ')'))
			ORDER BY seq_in_index SEPARATOR ', '), ')')
		FROM information_schema.statistics WHERE IS_IT AND index_name = 'PRIMARY'
	UNION ALL SELECT CONCAT('column ', LOWER(column_name)), CASE data_type WHEN 'bigint' THEN data_type WHEN 'varbinary' THEN
			CONCAT('varbinary(', LEAST(character_maximum_length, CASE column_name WHEN 'name' THEN 1024 WHEN 'waiter' THEN 400 ELSE 32 END), ')') ELSE column_type END
		FROM information_schema.columns WHERE IS_IT`

// checkShape returns an error if a table is not as it was made, in what is needed.
func checkShape(ctx context.Context, c *sql.Conn, quoted string, needs []sqltable.Need) error {
	database, table := where(quoted)
	text := strings.ReplaceAll(shape, "IS_IT", "table_schema = COALESCE(?, DATABASE()) AND table_name = ?")
	has := map[string]string{}
	var part string
	var is sql.NullString
	err := query(ctx, c, text, []any{database, table, database, table, database, table}, []any{&part, &is}, func() { has[part] = is.String })
	if err != nil {
		return err
	}
	if err := sqltable.Check(quoted, "mysql", needs, has); err != nil {
		return err
	}
	// information_schema has the table of all sessions, and not one that hides it here.
	if err := c.QueryRowContext(ctx, "SHOW CREATE TABLE "+quoted).Scan(&table, &part); err != nil {
		return explain(err)
	}
	if strings.HasPrefix(part, "CREATE TEMPORARY") {
		drop(c)
		return fmt.Errorf("a temporary table hides the table %s in this session, so other sessions would not see a lock: give it another name (%w)", quoted, node.ErrUnsent)
	}
	return nil
}
