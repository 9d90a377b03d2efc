//go:build unix

package servertest_test

import (
	"errors"
	"os"
	"os/user"
	"strconv"
	"testing"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

func TestMain(m *testing.M) { os.Exit(servertest.Main(m)) }

// TestServerDeletesNoTemporaryTableOfAnother has another server's temporary table
// in the system's folder for them while one starts.
func TestServerDeletesNoTemporaryTableOfAnother(t *testing.T) {
	table, err := os.CreateTemp("", "#sql-temptable-*.MAI")
	must(t, err)
	defer os.Remove(table.Name())
	defer table.Close()
	must(t, table.Chmod(0o666))
	if os.Geteuid() == 0 { // the servers run as another user
		must(t, table.Chown(mysqlUser(t)))
	}
	servertest.OwnMariaDB(t)
	if _, err := os.Stat(table.Name()); err != nil {
		t.Error(err)
	}
}

// mysqlUser returns the numbers of the user under which MariaDB runs.
func mysqlUser(t *testing.T) (uid, gid int) {
	t.Helper()
	u, err := user.Lookup("mysql")
	must(t, err)
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	must(t, errors.Join(err1, err2))
	return uid, gid
}
