package mysql

import (
	"context"
	crand "crypto/rand"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/casnode"
)

// create is the statement that creates the table.
func create(table string) string {
	return `CREATE TABLE IF NOT EXISTS ` + table + ` (
	name    VARBINARY(1024) NOT NULL PRIMARY KEY,
	version VARBINARY(32) NOT NULL,
	state   MEDIUMBLOB NOT NULL
) ENGINE = InnoDB`
}

// ready returns what is known about the server and its table.
func (s *store) ready() (*prepared, error) {
	if p := s.prepared.Load(); p != nil {
		return p, nil
	}
	return nil, casnode.ErrUnprepared
}

// Prepare creates the table, if it is not there, and checks server and table.
func (s *store) Prepare(ctx context.Context) error {
	c, err := s.conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	var version string
	if err := c.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version); err != nil {
		return err
	}
	p := &prepared{dialect: dialectOf(version)}
	var fitness string
	for _, p.fit = range []string{p.quick, p.fitness} {
		if err := c.QueryRowContext(ctx, p.limitedBy(ctx, "SELECT "+p.server+", "+p.fit)).Scan(&p.id, &fitness); err != nil {
			return explain(err)
		}
		if fitness != "replicated" {
			break
		}
	}
	p.texts = p.statements(s.table, p.fit)
	if err := s.checkFitness(ctx, c, fitness); err != nil {
		return err
	}
	if p.blind, err = p.checkSources(ctx, c); err != nil {
		return err
	}
	var one int
	err = c.QueryRowContext(ctx, p.limitedBy(ctx, "SELECT COUNT(*) FROM "+s.table+" WHERE name = x''")).Scan(&one)
	if number(err) == noTable {
		if _, err := c.ExecContext(ctx, create(s.table)); err != nil {
			return fmt.Errorf("%w: the table %s is missing and cannot be created: create it by hand (redlatch schema mysql)", err, s.table)
		}
	} else if err != nil && number(err) != unknownColumn {
		return explain(err)
	}
	if err := s.checkShape(ctx, c); err != nil {
		return err
	}
	if one == 0 {
		_, err := c.ExecContext(ctx, p.limitedBy(ctx, p.first), crand.Text(), casnode.Unmarked())
		if err != nil && number(err) != duplicate { // another client was first
			return explain(err)
		}
	}
	s.prepared.Store(p)
	return nil
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
	columns, err := rows.Columns()
	if err != nil || !rows.Next() {
		return false, explain(rows.Err())
	}
	values := make([]sql.RawBytes, len(columns))
	to := make([]any, len(columns))
	for i := range values {
		to[i] = &values[i]
	}
	if err := rows.Scan(to...); err != nil {
		return false, explain(err)
	}
	var host, port string
	for i, column := range columns {
		switch {
		case strings.EqualFold(column, d.sourceHost):
			host = string(values[i])
		case strings.EqualFold(column, d.sourcePort):
			port = string(values[i])
		}
	}
	return false, fmt.Errorf("this server is set up to replicate from %s:%s: give the address of the primary, or if it has taken that one's place, execute %s (%w)",
		host, port, d.forget, node.ErrUnsent)
}

// needs are the columns that create makes, as far as locks depend on them.
var needs = []struct {
	name, types string
	size        int
}{
	{"name", "varbinary", 1024},
	{"version", "varbinary", 32},
	{"state", "mediumblob longblob", 0},
}

// shape asks for the kind and the engine of a table, its primary key, and its
// columns. Each row of the answer has a key and a text.
const shape = `SELECT 'kind', LOWER(table_type) FROM information_schema.tables WHERE IS_IT
	UNION ALL SELECT 'engine', engine FROM information_schema.tables WHERE IS_IT
	UNION ALL SELECT 'key', GROUP_CONCAT(IF(sub_part IS NULL, column_name, CONCAT(column_name, '(', sub_part, ')')) ORDER BY seq_in_index SEPARATOR ', ')
		FROM information_schema.statistics WHERE IS_IT AND index_name = 'PRIMARY'
	UNION ALL SELECT CONCAT('column ', LOWER(column_name)), column_type FROM information_schema.columns WHERE IS_IT`

// checkShape returns an error if the table is not as create makes it, in what
// locks depend on. Without its key, or with one that takes two names for the same,
// there would be two rows of a name, or one row of two.
func (s *store) checkShape(ctx context.Context, c *sql.Conn) error {
	database, table := s.where()
	text := strings.ReplaceAll(shape, "IS_IT", "table_schema = COALESCE(?, DATABASE()) AND table_name = ?")
	rows, err := c.QueryContext(ctx, text, database, table, database, table, database, table, database, table)
	if err != nil {
		return explain(err)
	}
	defer rows.Close()
	has := map[string]string{}
	for rows.Next() {
		var key string
		var value sql.NullString
		if err := rows.Scan(&key, &value); err != nil {
			return explain(err)
		}
		has[key] = value.String
	}
	if err := rows.Err(); err != nil {
		return explain(err)
	}
	var wrong []string
	if has["engine"] != "InnoDB" {
		wrong = append(wrong, fmt.Sprintf("it is a %s of the engine %q and not InnoDB", has["kind"], has["engine"]))
	}
	for _, n := range needs {
		is := has["column "+n.name]
		kind, rest, _ := strings.Cut(is, "(")
		size, _ := strconv.Atoi(strings.TrimSuffix(rest, ")"))
		want := strings.ReplaceAll(n.types, " ", " or ")
		if n.size > 0 {
			want = fmt.Sprintf("%s(%d)", want, n.size)
		}
		switch {
		case is == "":
			wrong = append(wrong, "it has no column "+n.name)
		case !slices.Contains(strings.Fields(n.types), kind) || size < n.size:
			wrong = append(wrong, fmt.Sprintf("the column %s is %s and not %s", n.name, is, want))
		}
	}
	switch key := has["key"]; {
	case key == "":
		wrong = append(wrong, "it has no primary key, which must be (name)")
	case !strings.EqualFold(key, "name"):
		wrong = append(wrong, fmt.Sprintf("its primary key is (%s) and not (name)", key))
	}
	if wrong == nil {
		return nil
	}
	return fmt.Errorf("the table %s is not the one that redlatch schema mysql prints: %s (%w)", s.table, strings.Join(wrong, "; "), node.ErrUnsent)
}
