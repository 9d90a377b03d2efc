//go:build unix

package servertest_test

import (
	"database/sql"
	"os"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

func TestMain(m *testing.M) { os.Exit(servertest.Main(m)) }

func TestServersAnswer(t *testing.T) {
	for driver, dsn := range map[string]func(testing.TB) string{"mysql": servertest.MariaDB, "pgx": servertest.PostgreSQL} {
		t.Run(driver, func(t *testing.T) {
			start := time.Now()
			db, err := sql.Open(driver, dsn(t))
			check.Must(t, err)
			defer db.Close()
			var version string
			check.Must(t, db.QueryRow("SELECT version()").Scan(&version))
			t.Logf("%s after %v", version, time.Since(start))
			if !strings.Contains(version, "MariaDB") && !strings.Contains(version, "PostgreSQL") {
				t.Errorf("this is %s", version)
			}
		})
	}
}
