//go:build unix

// Package rowtest breaks the server under a node that keeps its locks in a table,
// in every way that users have met, and checks what the node does.
package rowtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/faultproxy"
	"github.com/redlatch/redlatch/internal/sqltest"
	"github.com/redlatch/redlatch/node"
)

// Harness says how a kind of database is used.
type Harness struct {
	// Start starts a server.
	Start func(t testing.TB) *sqltest.Own
	// Follow starts a replica of it that follows asynchronously, and returns
	// what makes it take the server's place.
	Follow func(t testing.TB, primary *sqltest.Own) (replica *sqltest.Own, promote func())
	// Open returns a node on the table redlatch_lock, for an address and for
	// settings of its sessions.
	Open func(t testing.TB, dsn string, settings Settings) node.Node
	// Driver is the name of the driver in package database/sql.
	Driver string
	// LockRow is a statement that keeps others from writing the row of a name
	// until the transaction ends. Its parameter is the name.
	LockRow string
	// Waiting is a query for how many sessions wait for a row.
	Waiting string
	// KillWaiting ends the sessions that wait for a row.
	KillWaiting func(t testing.TB, db *sql.DB)
	// FillDisk has every write to the table fail as on a full disk. EmptyDisk
	// ends that.
	FillDisk, EmptyDisk []string
}

// Settings are those of a node's sessions.
type Settings struct {
	// Pool is how many connections there are; 0 for the default.
	Pool int
	// Timeout is after how long the server cancels a statement; 0 for never.
	Timeout time.Duration
	// Serializable has every transaction be serializable.
	Serializable bool
}

// patience is how long a test waits for what should come soon.
const patience = time.Minute

// Run runs the tests.
func Run(t *testing.T, h Harness) {
	for name, test := range map[string]func(*testing.T, Harness){
		"a server that is frozen":                   frozen,
		"a server that is killed and restarted":     restarted,
		"a replica that lacks the last commits":     failedOver,
		"a session that is killed in mid-statement": sessionKilled,
		"a transaction that keeps the row":          rowKept,
		"a statement that takes too long":           timedOut,
		"transactions that cannot be serialized":    serialized,
		"a pool without a free connection":          poolExhausted,
		"a disk that is full":                       diskFull,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, h)
		})
	}
}

// request returns a request for the name "job".
func request(op node.Op, value string) node.Request {
	return node.Request{Op: op, Name: "job", Value: value, TTL: time.Minute, Retention: time.Hour, Window: 10 * time.Second,
		Token: node.Token(time.Now().UnixMicro())}
}

func do(t testing.TB, n node.Node, req node.Request) node.Reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := n.Do(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// want checks the status of a request.
func want(t testing.TB, n node.Node, req node.Request, status node.Status) {
	t.Helper()
	if r := do(t, n, req); r.Status != status {
		t.Errorf("%v by %s: %v, want %v", req.Op, req.Value, r.Status, status)
	}
}

// within executes a request with a time limit, which it must keep.
func within(t testing.TB, n node.Node, req node.Request, limit time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	begin := time.Now()
	_, err := n.Do(ctx, req)
	if took := time.Since(begin); took > limit+10*time.Second { // far more than a busy machine needs
		t.Errorf("a request with a limit of %v took %v", limit, took)
	}
	return err
}

// eventually repeats a request until it has an answer.
func eventually(t testing.TB, n node.Node, req node.Request) node.Reply {
	t.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		var r node.Reply
		r, err = n.Do(ctx, req)
		cancel()
		if err == nil {
			return r
		}
	}
	t.Fatal(err)
	return node.Reply{}
}

// open opens a server, a node on it, and a connection of an operator.
func (h Harness) open(t testing.TB, settings Settings) (*sqltest.Own, node.Node, *sql.DB) {
	t.Helper()
	server := h.Start(t)
	return server, h.node(t, server.DSN(), settings), h.operator(t, server)
}

func (h Harness) node(t testing.TB, dsn string, settings Settings) node.Node {
	t.Helper()
	n := h.Open(t, dsn, settings)
	t.Cleanup(func() { n.Close() })
	return n
}

func (h Harness) operator(t testing.TB, server *sqltest.Own) *sql.DB {
	t.Helper()
	db, err := sql.Open(h.Driver, server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func mustExec(t testing.TB, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func frozen(t *testing.T, h Harness) {
	server, n, _ := h.open(t, Settings{})
	want(t, n, request(node.OpAcquire, "first"), node.Granted)
	server.Freeze()
	if err := within(t, n, request(node.OpExtend, "first"), 300*time.Millisecond); err == nil {
		t.Error("a frozen server has answered")
	}
	server.Thaw()
	if r := eventually(t, n, request(node.OpAcquire, "second")); r.Status != node.Held {
		t.Errorf("after the thaw another acquires: %v", r.Status)
	}
	want(t, n, request(node.OpRelease, "first"), node.Granted)
}

func restarted(t *testing.T, h Harness) {
	server, n, _ := h.open(t, Settings{})
	c := client(t, n)
	lease, err := c.Lock(context.Background(), "job", redlatch.LockOptions{TTL: time.Minute, NoKeepAlive: true})
	if err != nil {
		t.Fatal(err)
	}
	server.Kill()
	if err := within(t, n, request(node.OpInspect, ""), time.Second); err == nil {
		t.Error("a server that was killed has answered")
	}
	server.Restart()
	// What it acknowledged it still has, so it is trusted at once.
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		_, err = c.TryLock(context.Background(), "job", redlatch.LockOptions{})
		if errors.Is(err, redlatch.ErrHeld) || errors.Is(err, redlatch.ErrQuarantine) || time.Now().After(end) {
			break
		}
	}
	if !errors.Is(err, redlatch.ErrHeld) || errors.Is(err, redlatch.ErrQuarantine) {
		t.Errorf("after the restart: %v, want ErrHeld", err)
	}
	if err := lease.Release(context.Background()); err != nil {
		t.Error(err)
	}
}

// bounds make a short quarantine.
var bounds = redlatch.Options{MaxTTL: 2 * time.Second, TokenWindow: 500 * time.Millisecond, NodeTimeout: 2 * time.Second, AssumeFresh: true}

func client(t testing.TB, n node.Node) *redlatch.Client {
	t.Helper()
	opts := bounds
	opts.MaxTTL = time.Minute
	return newClient(t, n, opts)
}

func newClient(t testing.TB, n node.Node, opts redlatch.Options) *redlatch.Client {
	t.Helper()
	c, err := redlatch.New([]redlatch.Node{n}, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// failedOver has a replica that lacks a lock take the server's place, behind the
// same address.
func failedOver(t *testing.T, h Harness) {
	primary := h.Start(t)
	proxy, err := faultproxy.New(primary.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	n := h.node(t, primary.Through(proxy.Addr()), Settings{})
	c := newClient(t, n, bounds)
	if err := c.Do(context.Background(), "other", redlatch.LockOptions{}, func(context.Context, *redlatch.Lease) error { return nil }); err != nil {
		t.Fatal(err)
	}
	replica, promote := h.Follow(t, primary)
	replica.Freeze()
	lease, err := c.Lock(context.Background(), "job", redlatch.LockOptions{NoKeepAlive: true})
	if err != nil {
		t.Fatal(err)
	}
	primary.Kill()
	replica.Thaw()
	promote()
	proxy.LeadTo(replica.Addr())
	proxy.Cut()
	quarantined := false
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		second, err := c.TryLock(context.Background(), "job", redlatch.LockOptions{})
		if err == nil {
			if !quarantined {
				t.Error("the replica was never quarantined")
			}
			if lease.Err() == nil {
				t.Error("the lock was granted while it was held")
			}
			if second.Token() <= lease.Token() {
				t.Errorf("token %v after %v", second.Token(), lease.Token())
			}
			return
		}
		quarantined = quarantined || errors.Is(err, redlatch.ErrQuarantine)
	}
	t.Error("the replica never granted the lock")
}

// blocked has another transaction keep the row while a request writes it.
func blocked(t *testing.T, h Harness, n node.Node, db *sql.DB, req node.Request, limit time.Duration, meanwhile func()) (*sql.Tx, error) {
	t.Helper()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tx.Rollback() })
	if _, err := tx.Exec(h.LockRow, []byte("job")); err != nil {
		t.Fatal(err)
	}
	answer := make(chan error, 1)
	go func() { answer <- within(t, n, req, limit) }()
	// MariaDB shows what was so when it was last asked, if that was just now.
	for waiting := 0; waiting == 0 && len(answer) == 0; time.Sleep(150 * time.Millisecond) {
		if err := db.QueryRow(h.Waiting).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	meanwhile()
	return tx, <-answer
}

func sessionKilled(t *testing.T, h Harness) {
	_, n, db := h.open(t, Settings{})
	want(t, n, request(node.OpAcquire, "first"), node.Granted)
	tx, err := blocked(t, h, n, db, request(node.OpRelease, "first"), patience, func() { h.KillWaiting(t, db) })
	if err == nil {
		t.Error("a request whose session was killed has an answer")
	}
	tx.Rollback()
	// Whether it was executed is not known. It was not, and nothing is left of it.
	if r := eventually(t, n, request(node.OpAcquire, "second")); r.Status != node.Held {
		t.Errorf("another acquires: %v, want held", r.Status)
	}
}

func rowKept(t *testing.T, h Harness) {
	_, n, db := h.open(t, Settings{})
	want(t, n, request(node.OpAcquire, "first"), node.Granted)
	tx, err := blocked(t, h, n, db, request(node.OpExtend, "first"), 500*time.Millisecond, func() {})
	if err == nil {
		t.Error("a request whose row was kept has an answer")
	}
	// Other names are not held up.
	other := request(node.OpAcquire, "first")
	other.Name = "other"
	want(t, n, other, node.Granted)
	tx.Rollback()
	want(t, n, request(node.OpRelease, "first"), node.Granted)
}

func timedOut(t *testing.T, h Harness) {
	_, n, db := h.open(t, Settings{Timeout: 300 * time.Millisecond})
	eventually(t, n, request(node.OpAcquire, "first"))
	tx, err := blocked(t, h, n, db, request(node.OpRelease, "first"), patience, func() {})
	if err == nil {
		t.Error("a statement that took too long has an answer")
	}
	tx.Rollback()
	if r := eventually(t, n, request(node.OpAcquire, "second")); r.Status != node.Held {
		t.Errorf("another acquires: %v, want held", r.Status)
	}
}

// serialized has many contend for one name. The server refuses some of their
// transactions; no caller sees that.
func serialized(t *testing.T, h Harness) {
	server := h.Start(t)
	count, in := 0, 0
	var mu sync.Mutex
	var all sync.WaitGroup
	const contenders, times = 4, 5
	for i := range contenders {
		n := h.node(t, server.DSN(), Settings{Serializable: true})
		all.Go(func() {
			for j := range times {
				req := request(node.OpAcquire, fmt.Sprintf("%d-%d", i, j))
				for {
					req.Token = node.Token(time.Now().UnixMicro())
					if do(t, n, req).Status == node.Granted {
						break
					}
					time.Sleep(time.Millisecond)
				}
				mu.Lock()
				if in++; in > 1 {
					t.Errorf("%d hold the lock", in)
				}
				count++
				mu.Unlock()
				time.Sleep(time.Millisecond)
				mu.Lock()
				in--
				mu.Unlock()
				req.Op = node.OpRelease
				do(t, n, req)
			}
		})
	}
	all.Wait()
	if count != contenders*times {
		t.Errorf("%d were served, want %d", count, contenders*times)
	}
}

func poolExhausted(t *testing.T, h Harness) {
	_, n, db := h.open(t, Settings{Pool: 1})
	want(t, n, request(node.OpAcquire, "first"), node.Granted)
	tx, err := blocked(t, h, n, db, request(node.OpExtend, "first"), 5*time.Second, func() {
		// The only connection waits for the row.
		if err := within(t, n, request(node.OpInspect, ""), 200*time.Millisecond); !errors.Is(err, node.ErrUnsent) {
			t.Errorf("without a free connection: %v, want one that is ErrUnsent", err)
		}
	})
	if err == nil {
		t.Error("a request whose row was kept has an answer")
	}
	tx.Rollback()
	if r := eventually(t, n, request(node.OpAcquire, "second")); r.Status != node.Held {
		t.Errorf("another acquires: %v, want held", r.Status)
	}
}

func diskFull(t *testing.T, h Harness) {
	_, n, db := h.open(t, Settings{})
	want(t, n, request(node.OpAcquire, "first"), node.Granted)
	mustExec(t, db, h.FillDisk...)
	if err := within(t, n, request(node.OpRelease, "first"), patience); !errors.Is(err, node.ErrUnsent) {
		t.Errorf("on a full disk: %v, want one that is ErrUnsent", err)
	}
	want(t, n, request(node.OpAcquire, "second"), node.Held) // it reads, and writes nothing
	mustExec(t, db, h.EmptyDisk...)
	want(t, n, request(node.OpRelease, "first"), node.Granted)
}
