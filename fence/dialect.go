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

// statements are what an SQL guard sends to its table.
type statements struct {
	create string // creates the table if it does not exist
	raise  string // (resource, token): sets the row to the token, unless it is higher, and locks it either way
	read   string // (resource): the row's token
}

func (d Dialect) statements(table string) statements {
	t := d.quote(table)
	s := statements{read: "SELECT token FROM " + t + " WHERE resource = " + d.place(1)}
	switch d {
	case MySQL:
		// Bytes, since collations treat different names as equal. InnoDB, since
		// the check relies on its row locks.
		s.create = "CREATE TABLE IF NOT EXISTS " + t + " (resource VARBINARY(255) NOT NULL PRIMARY KEY, token BIGINT NOT NULL) ENGINE=InnoDB"
		// The token that was compared is returned as the insert id. The number
		// of rows affected depends on the client's settings, and a separate
		// read could see a later write.
		s.raise = "INSERT INTO " + t + " (resource, token) VALUES (?, ?) ON DUPLICATE KEY UPDATE token = GREATEST(LAST_INSERT_ID(token), ?)"
	case PostgreSQL:
		// Names are compared as bytes, independent of the database's collation.
		s.create = "CREATE TABLE IF NOT EXISTS " + t + ` (resource text COLLATE "C" PRIMARY KEY, token bigint NOT NULL)`
		s.raise = upsert(t, "$1, $2")
	case SQLite:
		s.create = "CREATE TABLE IF NOT EXISTS " + t + " (resource TEXT NOT NULL PRIMARY KEY, token INTEGER NOT NULL) WITHOUT ROWID"
		s.raise = upsert(t, "?, ?")
	}
	return s
}

// upsert also writes a row whose token is equal. In PostgreSQL the new version
// of the row makes a concurrent transaction with an older snapshot fail;
// otherwise that could write based on outdated reads.
func upsert(table, places string) string {
	return "INSERT INTO " + table + " AS guard (resource, token) VALUES (" + places + ")" +
		" ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE guard.token <= excluded.token"
}
