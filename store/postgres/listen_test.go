//go:build unix

package postgres_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/postgres"
)

// TestConnectionThatWentSilentIsMadeAnew has something on the way forget the
// connection that listens. That is found, and waiters are notified again. The table
// has the longest name that is allowed.
func TestConnectionThatWentSilentIsMadeAnew(t *testing.T) {
	server := servertest.OwnPostgreSQL(t)
	proxy := servertest.NewProxy(t, server)
	pool, err := pgxpool.New(t.Context(), server.Through(proxy.Addr()))
	must(t, err)
	schema, table := strings.Repeat("s", 63), strings.Repeat("t", 63)
	exec(t, databaseAt(t, server.DSN()), "CREATE SCHEMA "+schema)
	n, err := postgres.From(pool, &postgres.Options{Table: schema + "." + table})
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

// TestNodesOfAProgramShareTheConnectionThatListens closes the node that made it.
func TestNodesOfAProgramShareTheConnectionThatListens(t *testing.T) {
	server := servertest.OwnPostgreSQL(t)
	first, err := postgres.Open(server.DSN(), nil)
	must(t, err)
	second, err := postgres.Open(server.DSN(), nil)
	must(t, err)
	defer second.Close()
	awaken(t, first)
	awaken(t, second)
	var count int
	must(t, databaseAt(t, server.DSN()).QueryRow("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'").Scan(&count))
	if count != 1 {
		t.Errorf("%d connections listen", count)
	}
	must(t, first.Close())
	awaken(t, second)
}

// awaken has a waiter be notified. On a busy machine the connection that listens
// may miss its time limits, and notifications get lost. Then it tries again.
func awaken(t *testing.T, n *postgres.Node) {
	t.Helper()
	poll.Within(t, 2*poll.Patience, func() error { return notified(t.Context(), n, rand.Text()) })
}

// notified returns nil if a release notifies the waiter for a name.
func notified(ctx context.Context, n *postgres.Node, name string) error {
	woken := make(chan node.Wake, 100)
	defer n.Listen(func(w node.Wake) { woken <- w })()
	first := node.Request{Op: node.OpAcquire, Name: name, Value: "first", TTL: time.Minute, Fencing: node.Fencing{Retention: time.Minute}}
	second := first
	second.Value, second.Wait = "second", true
	if r, err := n.Do(ctx, first); err != nil || r.Status != node.Granted {
		return fmt.Errorf("the holder: %v, %v", r.Status, err)
	}
	for r := (node.Reply{}); !r.Wakes; time.Sleep(20 * time.Millisecond) {
		var err error
		if r, err = n.Do(ctx, second); err != nil || r.Status != node.Held {
			return fmt.Errorf("the waiter: %v, %v", r.Status, err)
		}
	}
	first.Op = node.OpRelease
	if r, err := n.Do(ctx, first); err != nil || r.Status != node.Granted {
		return fmt.Errorf("a release with a waiter: %v, %v", r.Status, err)
	}
	for end := time.After(20 * time.Second); ; {
		select {
		case w := <-woken:
			if w.Kind == node.WakeTurn && w.Value == "second" {
				return nil
			}
		case <-end:
			return errors.New("the waiter was not notified")
		}
	}
}
