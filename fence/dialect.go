package fence

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/redlatch/redlatch/node"
)

// Dialect is the kind of SQL that a database speaks.
type Dialect string

// The dialects that are known.
const (
	// SQLite is SQLite from 3.24 on.
	SQLite Dialect = "sqlite"
	// MySQL is MySQL and MariaDB, with InnoDB tables.
	MySQL Dialect = "mysql"
	// PostgreSQL is PostgreSQL from 9.5 on.
	PostgreSQL Dialect = "postgresql"
)

func (d Dialect) check() error {
	switch d {
	case SQLite, MySQL, PostgreSQL:
		return nil
	}
	return &node.ConfigError{Field: "dialect", Value: string(d), Bound: "sqlite, mysql or postgresql"}
}

// place returns the placeholder of the n-th argument.
func (d Dialect) place(n int) string {
	if d == PostgreSQL {
		return "$" + strconv.Itoa(n)
	}
	return "?"
}

// quote returns a name that was checked as an identifier, so that a reserved
// word can be one.
func (d Dialect) quote(name string) string {
	mark := `"`
	if d == MySQL {
		mark = "`"
	}
	return mark + strings.ReplaceAll(name, ".", mark+"."+mark) + mark
}

// forUpdate ends a read that must return the row that made a statement fail. In
// MySQL a plain read returns the transaction's snapshot, which may be older; a
// proxy may even send it to a replica. In PostgreSQL such a statement fails
// instead, and SQLite has one writer at a time.
func (d Dialect) forUpdate() string {
	if d == MySQL {
		return " FOR UPDATE"
	}
	return ""
}

// Names of tables may have a schema before them. The limit is PostgreSQL's,
// which truncates longer names silently.
var (
	columnName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)
	tableName  = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]{0,62}\.)?[A-Za-z_][A-Za-z0-9_]{0,62}$`)
)

func checkTable(name string) error {
	if !tableName.MatchString(name) {
		return &node.ConfigError{Field: "table", Value: name, Bound: "a name of up to 63 ASCII letters, digits and underscores, or two such with a dot between"}
	}
	return nil
}

func checkColumn(field, name string) error {
	if !columnName.MatchString(name) {
		return &node.ConfigError{Field: field, Value: name, Bound: "a name of up to 63 ASCII letters, digits and underscores"}
	}
	return nil
}

// A claim is how writers, or readers, claim a row of a guard table.
type claim struct {
	raise string // (resource, token …): unless the row refuses the token, records it, and locks the row either way
	args  int    // how often raise takes the token
	read  string // (resource): the highest token that refuses others
}

// statements are what an SQL guard sends to its table.
type statements struct {
	create string // creates the table if it does not exist
	probe  string // finds no row if the table exists
	write  claim
	reads  claim
}

func (d Dialect) statements(table string) statements {
	t, c := d.quote(table), d.columns("token")
	from := " FROM " + t + " WHERE resource = " + d.place(1)
	s := statements{
		probe: "SELECT 1 FROM " + t + " WHERE token < 0",
		write: claim{args: 1, read: "SELECT token" + from},
		reads: claim{args: 2, read: "SELECT " + c.highestWriter("") + from},
	}
	more := ", " + c.reader + " BIGINT, " + c.writer + " BIGINT"
	switch d {
	case MySQL:
		// Bytes, since collations treat different names as equal. InnoDB, since
		// the check relies on its row locks.
		s.create = "CREATE TABLE IF NOT EXISTS " + t + " (resource VARBINARY(255) NOT NULL PRIMARY KEY, token BIGINT NOT NULL" + more + ") ENGINE=InnoDB"
		// The token that was compared is returned as the insert id. The number
		// of rows affected depends on the client's settings, and a separate
		// read could see a later write.
		s.write.raise = "INSERT INTO " + t + " (resource, token) VALUES (?, ?) ON DUPLICATE KEY UPDATE token = GREATEST(LAST_INSERT_ID(token), ?)"
		s.write.args = 2
		// A reader below the token changes nothing: it is refused, or another
		// reader has the token. Each assignment sees the ones before it or, in
		// some modes of MariaDB, none of them. Both are right.
		s.reads.raise = "INSERT INTO " + t + " (resource, token, " + c.reader + ", " + c.writer + ") VALUES (?, ?, ?, 0) ON DUPLICATE KEY UPDATE " +
			c.writer + " = LAST_INSERT_ID(" + c.highestWriter("") + "), token = GREATEST(token, ?), " + c.reader + " = IF(token <= ?, ?, " + c.reader + ")"
		s.reads.args = 5
	case PostgreSQL:
		// Names are compared as bytes, independent of the database's collation.
		s.create = "CREATE TABLE IF NOT EXISTS " + t + ` (resource text COLLATE "C" PRIMARY KEY, token bigint NOT NULL` + more + ")"
		s.write.raise, s.reads.raise = upsert(t, "$1, $2"), upsertRead(t, c, "$1, $2, $3")
	case SQLite:
		s.create = "CREATE TABLE IF NOT EXISTS " + t + " (resource TEXT NOT NULL PRIMARY KEY, token INTEGER NOT NULL" + more + ") WITHOUT ROWID"
		s.write.raise, s.reads.raise = upsert(t, "?, ?"), upsertRead(t, c, "?, ?, ?")
	}
	return s
}

// columns are the names of a token's columns, as identifiers. The first has the highest
// token of all, and is the only one that writers know: a writer is compared with it and
// sets it. The other two are set by readers, to what makes the first one theirs: reader
// is equal to it, and writer is the highest token of a writer by then. When a writer
// has set the first one since, reader is lower, and the highest writer's is the first
// one. So it is where reader and writer are NULL.
type columns struct{ token, reader, writer string }

func (d Dialect) columns(token string) columns {
	return columns{d.quote(token), d.quote(token + "_reader"), d.quote(token + "_writer")}
}

// highestWriter returns the expression for the highest token of a writer. row is
// what the names are qualified with.
func (c columns) highestWriter(row string) string {
	return "COALESCE(CASE WHEN " + row + c.reader + " = " + row + c.token + " THEN " + row + c.writer + " END, " + row + c.token + ", 0)"
}

// highest returns the expression for the higher one of the row's token and
// another.
func (c columns) highest(row, other1, other2 string) string {
	return "CASE WHEN " + row + c.token + " > " + other1 + " THEN " + row + c.token + " ELSE " + other2 + " END"
}

// upsert also writes a row whose token is equal. In PostgreSQL the new version
// of the row makes a concurrent transaction with an older snapshot fail;
// otherwise that could write based on outdated reads.
func upsert(table, places string) string {
	return "INSERT INTO " + table + " AS guard (resource, token) VALUES (" + places + ")" +
		" ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE guard.token <= excluded.token"
}

// upsertRead is upsert for readers. All expressions see the row as it was.
func upsertRead(table string, c columns, places string) string {
	raised := c.highest("guard.", "excluded.token", "excluded.token")
	return "INSERT INTO " + table + " AS guard (resource, token, " + c.reader + ", " + c.writer + ") VALUES (" + places + ", 0)" +
		" ON CONFLICT (resource) DO UPDATE SET " + c.writer + " = " + c.highestWriter("guard.") + ", token = " + raised + ", " + c.reader + " = " + raised +
		" WHERE " + c.highestWriter("guard.") + " <= excluded.token"
}
