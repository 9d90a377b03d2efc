//go:build unix

package mysql_test

import (
	"os"
	"testing"

	"github.com/redlatch/redlatch/internal/sqltest"
	"github.com/redlatch/redlatch/mysql"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/nodetest"
)

func TestMain(m *testing.M) { os.Exit(sqltest.Main(m)) }

func TestConformance(t *testing.T) {
	dsn := sqltest.MariaDB(t)
	nodetest.Run(t, nodetest.Harness{
		Open: func(t testing.TB) (a, b node.Node) {
			open := func() node.Node {
				n, err := mysql.New(dsn, mysql.Options{})
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			return open(), open()
		},
		Queues: true,
		Shares: true,
		Marks:  true,
		Lists:  true,
	})
}
