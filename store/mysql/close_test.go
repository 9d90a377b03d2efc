//go:build unix

package mysql_test

import (
	"context"
	"testing"

	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/store/mysql"
)

func TestCloseAfterConnectionsBrokeIsNoError(t *testing.T) {
	t.Parallel()
	server := servertest.OwnMariaDB(t)
	proxy := servertest.NewProxy(t, server)
	for name, cut := range map[string]func(){"closed": proxy.Cut, "reset": proxy.Reset} {
		n, err := mysql.Open(server.Through(proxy.Addr()), &mysql.Options{Name: "test"})
		must(t, err)
		if _, err := n.Do(context.Background(), acquire("one")); err != nil {
			t.Fatal(err)
		}
		cut()
		if err := n.Close(); err != nil {
			t.Errorf("connections are %s: Close returns %v", name, err)
		}
	}
}
