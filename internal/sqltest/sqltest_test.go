//go:build unix

package sqltest_test

import (
	"database/sql"
	"os"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/redlatch/redlatch/internal/sqltest"
)

func TestMain(m *testing.M) { os.Exit(sqltest.Main(m)) }

func TestServersAnswer(t *testing.T) {
	for driver, dsn := range map[string]func(testing.TB) string{"mysql": sqltest.MariaDB, "pgx": sqltest.PostgreSQL} {
		t.Run(driver, func(t *testing.T) {
			start := time.Now()
			db, err := sql.Open(driver, dsn(t))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			var version string
			if err := db.QueryRow("SELECT version()").Scan(&version); err != nil {
				t.Fatal(err)
			}
			t.Logf("%s after %v", version, time.Since(start))
			if !strings.Contains(version, "MariaDB") && !strings.Contains(version, "PostgreSQL") {
				t.Errorf("this is %s", version)
			}
		})
	}
}
