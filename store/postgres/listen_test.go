//go:build unix

package postgres_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/postgres"
)

// TestConnectionThatWentSilentIsMadeAnew has something on the way forget the
// connection that listens. That is found, and waiters are notified again.
func TestConnectionThatWentSilentIsMadeAnew(t *testing.T) {
	server := servertest.OwnPostgreSQL(t)
	proxy := servertest.NewProxy(t, server)
	pool, err := pgxpool.New(t.Context(), server.Through(proxy.Addr()))
	must(t, err)
	n, err := postgres.From(pool, nil)
	must(t, err)
	defer n.Close()
	awaken(t, n)
	missed := make(chan error, 100)
	defer n.Listen(func(w node.Wake) {
		if w.Kind == node.WakeMissed && w.Err != nil {
			missed <- w.Err
		}
	})()
	noticed := func() bool {
		proxy.Forget()
		pool.Reset() // only the connection that listens is silent
		select {
		case err := <-missed:
			t.Log(err)
			return true
		case <-time.After(20 * time.Second):
			return false // it may have connected again since
		}
	}
	for tries := 1; !noticed(); tries++ {
		if tries == 3 {
			t.Fatal("nobody noticed that the connection is silent")
		}
	}
	awaken(t, n)
}
