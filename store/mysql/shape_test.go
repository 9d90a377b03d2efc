//go:build unix

package mysql_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/mysql"
)

// TestTableOfAnotherShapeIsRefused has tables that would hold two rows of a name,
// or one row of two names, or that lose rows. The error says what differs.
func TestTableOfAnotherShapeIsRefused(t *testing.T) { onBoth(t, otherShapes) }

func otherShapes(t *testing.T, p product) {
	dsn := p.shared(t)
	schema, err := mysql.Schema("shaped")
	must(t, err)
	tables := strings.SplitN(schema, ";", 4) // with a GRANT after the first
	schema = tables[0] + ";" + tables[2]
	for _, c := range []struct{ from, to, says string }{
		{"", "", ""},
		{"NOT NULL PRIMARY KEY", "NOT NULL", "its primary key is missing and not (name)"},
		{"NOT NULL PRIMARY KEY", "NOT NULL, id INT PRIMARY KEY AUTO_INCREMENT", "its primary key is (id) and not (name)"},
		{"NOT NULL PRIMARY KEY", "NOT NULL, PRIMARY KEY (name(10))", "its primary key is (name(10)) and not (name)"},
		{"VARBINARY(1024)", "VARCHAR(700)", "its column name is varchar(700) and not varbinary(1024)"},
		{"VARBINARY(1024)", "VARBINARY(100)", "its column name is varbinary(100) and not varbinary(1024)"},
		{"MEDIUMBLOB", "BLOB", "its column state is blob and not mediumblob or longblob"},
		{"VARBINARY(1024)", "VARBINARY(2000)", ""},
		{"MEDIUMBLOB", "LONGBLOB", ""},
		{"NOT NULL PRIMARY KEY", "NOT NULL, PRIMARY KEY (name, version)", "its primary key is (name, version) and not (name)"},
		{",\n\tstate   MEDIUMBLOB NOT NULL", "", "its column state is missing and not mediumblob"},
		{"InnoDB", "Aria", "its engine is Aria and not InnoDB"},
		{"(name, ticket, waiter)", "(name, waiter)", "its primary key is (name, waiter) and not (name, ticket, waiter)"},
		{"VARBINARY(400)", "VARBINARY(300)", "its column waiter is varbinary(300) and not varbinary(400)"},
	} {
		if c.from != "" && !strings.Contains(schema, c.from) {
			t.Fatalf("the schema has no %s", c.from)
		}
		if p.name == "MySQL" && c.to == "Aria" {
			continue // it has no other engine that can have this key
		}
		exec(t, dsn, append([]string{"DROP TABLE IF EXISTS shaped, shaped_place"}, strings.Split(strings.Replace(schema, c.from, c.to, 1), ";")...)...)
		n := openedOn(t, dsn, "shaped")
		if c.says == "" {
			granted(t, n, acquire("one"))
		} else if r, err := n.Do(t.Context(), acquire("one")); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q instead of %q: %v, %v; want %q", c.to, c.from, r.Status, err, c.says)
		}
	}
}

// TestTemporaryTableIsRefused has a session of a given pool hide the table, before
// the node has used it and after that.
func TestTemporaryTableIsRefused(t *testing.T) { onBoth(t, temporaryTable) }

func temporaryTable(t *testing.T, p product) {
	other := opened(t, p.shared(t))
	schema, err := mysql.Schema("")
	must(t, err)
	schema, _, _ = strings.Cut(schema, ";")
	for _, used := range []bool{false, true} {
		if used && p.name == "MySQL" {
			continue // it opens no temporary table twice, as each read does
		}
		n, db := over(t, p.shared(t), 1)
		req := acquire("one")
		req.Name = fmt.Sprint("hidden ", used)
		_, err := other.Do(t.Context(), node.Request{Op: node.OpInspect, Name: "job"})
		must(t, err)
		if used {
			_, err := n.Do(t.Context(), node.Request{Op: node.OpInspect, Name: "job"})
			must(t, err)
		}
		_, err = db.Exec(strings.Replace(schema, "TABLE IF NOT EXISTS", "TEMPORARY TABLE", 1))
		must(t, err)
		refused(t, n, req, "a temporary table hides")
		granted(t, n, req) // in another session
		heldFor(t, other, req)
	}
}

// TestTableThatWasDroppedIsCreatedAgain drops and empties the table under a node
// that has used it.
func TestTableThatWasDroppedIsCreatedAgain(t *testing.T) {
	dsn := servertest.MariaDB(t)
	n := openedOn(t, dsn, "dropped")
	for _, s := range []string{"SELECT 1", "DROP TABLE dropped", "TRUNCATE TABLE dropped", "DELETE FROM dropped"} {
		exec(t, dsn, s)
		granted(t, n, acquire("one"))
	}
}
