//go:build unix

package chaos_test

import (
	"os"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/redlatch/redlatch/internal/test/chaos"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == chaos.ClientVerb {
		os.Exit(chaos.RunClient(os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(servertest.Main(m))
}
