//go:build unix

package nodestate_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/redisproc"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/memory"
	"github.com/redlatch/redlatch/store/mysql"
	"github.com/redlatch/redlatch/store/postgres"
	"github.com/redlatch/redlatch/store/redis/direct"
	"github.com/redlatch/redlatch/store/sqlite"
)

func TestMain(m *testing.M) { os.Exit(servertest.Main(m)) }

// rival is a store that is compared with the model.
type rival struct {
	name string
	// start starts a server on which nothing is locked, and returns what opens a
	// node on it. flush, if it is not nil, has the server forget everything.
	start func(t *testing.T) (open opener, flush func())
	// exact says that a reply's time is the one by which the request was executed:
	// the store has the rules of the model.
	exact bool
	// stamps says that it is exact, except for writes without a read: the reply
	// has the earliest time at which they may have been executed.
	stamps bool
	// rows says that the store keeps rows, which are not written for each renewal
	// of a place in the queue, and that its waiters poll.
	rows bool
	// places says that the queue is in places, of which the model knows nothing: then
	// nobody waits.
	places bool
	// keeps says that a fence binds beyond its retention.
	keeps bool
	// marks says that it has a marker.
	marks bool
}

// rivals returns all stores: Redis, Valkey if it is installed, and those that keep
// rows.
func rivals() []rival {
	all := []rival{
		{name: "redis", marks: true, start: func(t *testing.T) (opener, func()) { return ofServer(servertest.Redis(t, 1)[0]) }},
		{name: "redis in batches", marks: true, start: inBatches},
		{name: "memory", exact: true, start: alone(func(t *testing.T) (node.Node, error) { return memory.New(nil), nil })},
		// It reads the clock of its replies before the one by which locks expire.
		{name: "sqlite", rows: true, keeps: true, start: alone(func(t *testing.T) (node.Node, error) {
			return sqlite.Open(filepath.Join(t.TempDir(), "locks.db"), nil)
		})},
		{name: "postgres", stamps: true, rows: true, places: true, marks: true, start: alone(func(t *testing.T) (node.Node, error) {
			return postgres.Open(servertest.PostgreSQL(t), &postgres.Options{Table: newTable(), Poll: true})
		})},
		{name: "mariadb", stamps: true, rows: true, places: true, marks: true, start: alone(func(t *testing.T) (node.Node, error) {
			return mysql.Open(servertest.MariaDB(t), &mysql.Options{Table: newTable()})
		})},
	}
	if path, err := exec.LookPath("valkey-server"); err == nil {
		all = append(all, rival{name: "valkey", marks: true, start: func(t *testing.T) (opener, func()) {
			return ofServer(servertest.Start(t, &redisproc.Server{Program: path}))
		}})
	}
	return all
}

type opener = func(t *testing.T) node.Node

// alone makes each node a server of its own.
func alone(open func(t *testing.T) (node.Node, error)) func(*testing.T) (opener, func()) {
	return func(*testing.T) (opener, func()) {
		return func(t *testing.T) node.Node {
			n, err := open(t)
			check.Must(t, err)
			t.Cleanup(func() { n.Close() })
			return n
		}, nil
	}
}

// ofServer opens nodes on a Redis server.
func ofServer(server *servertest.Server) (opener, func()) {
	open, _ := alone(func(*testing.T) (node.Node, error) {
		return direct.Open(server.URL(), nil)
	})(nil)
	return open, func() { server.Do("FLUSHALL") }
}

// tables counts the tables that were used.
var tables struct {
	sync.Mutex
	n int
}

func newTable() string {
	tables.Lock()
	defer tables.Unlock()
	tables.n++
	return fmt.Sprint("duel_", tables.n)
}

// listen has a node notify its waiters, if it can.
func listen(t *testing.T, n node.Node, rows bool) *watched {
	t.Helper()
	w := &watched{Node: n}
	if rows {
		return w
	}
	t.Cleanup(n.(node.Waker).Listen(w.hear))
	// No request is queued before notifications can arrive.
	for value, deadline := "primer", time.Now().Add(20*time.Second); ; time.Sleep(5 * time.Millisecond) {
		for _, v := range []string{"holder", value} {
			r, err := w.Do(context.Background(), node.Request{Op: node.OpAcquire, Name: "primer", Value: v,
				TTL: time.Minute, Waiting: node.Waiting{Wait: v == value, Ticket: time.Now().UnixMicro()}})
			check.Must(t, err)
			if r.Wakes {
				return w
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("wakes do not come")
		}
	}
}

// watched is a real node, and its notifications.
type watched struct {
	node.Node
	epoch uint64 // the highest that was sent or seen
	// read is how long the request took at most in which the node last read the
	// server's clock. It may have been in an earlier sequence. Acquisitions,
	// extensions and releases may go without a read.
	read  time.Duration
	mu    sync.Mutex
	wakes []string
}

func (w *watched) hear(wake node.Wake) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wakes = append(w.wakes, described(wake))
}

func described(w node.Wake) string { return fmt.Sprintf("%d %s %d", w.Kind, w.Value, w.Fence) }
