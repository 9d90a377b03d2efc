//go:build unix

package mysql_test

import (
	"context"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/mysql"
)

// TestTableOfAnotherShapeIsRefused has tables that would hold two rows of a name,
// or one row of two names, or that lose rows. The error says what differs.
func TestTableOfAnotherShapeIsRefused(t *testing.T) {
	dsn := servertest.MariaDB(t)
	schema, err := mysql.Schema("shaped")
	must(t, err)
	schema, _, _ = strings.Cut(schema, ";")
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
	} {
		if c.from != "" && !strings.Contains(schema, c.from) {
			t.Fatalf("the schema has no %s", c.from)
		}
		exec(t, dsn, "DROP TABLE IF EXISTS shaped", strings.Replace(schema, c.from, c.to, 1))
		n, err := mysql.Open(dsn, &mysql.Options{Table: "shaped"})
		must(t, err)
		defer n.Close()
		r, err := n.Do(context.Background(), acquire("one"))
		if c.says == "" {
			if err != nil || r.Status != node.Granted {
				t.Errorf("as it is printed: %v, %v", r.Status, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q instead of %q: %v, %v; want %q", c.to, c.from, r.Status, err, c.says)
		}
	}
}

// TestTableThatWasDroppedIsCreatedAgain drops and empties the table under a node
// that has used it.
func TestTableThatWasDroppedIsCreatedAgain(t *testing.T) {
	dsn := servertest.MariaDB(t)
	n, err := mysql.Open(dsn, &mysql.Options{Table: "dropped"})
	must(t, err)
	defer n.Close()
	for _, s := range []string{"SELECT 1", "DROP TABLE dropped", "TRUNCATE TABLE dropped", "DELETE FROM dropped"} {
		exec(t, dsn, s)
		if r, err := n.Do(context.Background(), acquire("one")); err != nil || r.Status != node.Granted {
			t.Errorf("after %s: %v, %v", s, r.Status, err)
		}
	}
}
