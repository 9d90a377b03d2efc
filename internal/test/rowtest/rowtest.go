//go:build unix

// Package rowtest breaks the servers under a node that keeps its locks in rows,
// in every way that users have met, and checks what the node does.
package rowtest

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
)

// Harness says how a kind of database is used.
type Harness struct {
	// Start starts a server.
	Start func(t testing.TB) *servertest.OwnDatabase
	// Follow starts a replica of it that follows asynchronously. stop ends
	// that, and promote puts it in the server's place.
	Follow func(t testing.TB, primary *servertest.OwnDatabase) (replica *servertest.OwnDatabase, stop, promote func())
	// Open returns a node on the table redlatch_lock, for an address and for
	// settings of its sessions.
	Open func(t testing.TB, dsn string, settings Settings) node.Node
	// Between returns a node on a server that is reached at another address. It
	// calls between after each read, before the write that belongs to it.
	Between func(t testing.TB, server *servertest.OwnDatabase, at string, between func()) node.Node
	// Driver is the name of the driver in package database/sql.
	Driver string
	// LockRow is a statement that keeps others from writing the row of a name
	// until the transaction ends. Its parameter is the name.
	LockRow string
	// Waiting is a query for how many sessions wait for a row.
	Waiting string
	// KillWaiting ends the sessions that wait for a row.
	KillWaiting func(t testing.TB, db *sql.DB)
	// FillDisk makes every write to the table fail as on a full disk. EmptyDisk
	// ends that.
	FillDisk, EmptyDisk []string
}

// Settings are those of the sessions of a node.
type Settings struct {
	// Timeout is after how long the server cancels a statement; 0 for never.
	Timeout time.Duration
	// Serializable makes every transaction serializable.
	Serializable bool
}

// patience is how long a test waits for what should come soon.
const patience = time.Minute

// Faults are the ways to break a server.
type Faults map[string]func(*testing.T, Harness)

// All are all of them.
var All = Faults{
	"a server that is frozen":                   frozen,
	"a server that is killed and restarted":     restarted,
	"a replica that lacks the last commits":     failedOver,
	"a session that is killed in mid-statement": sessionKilled,
	"a transaction that keeps the row":          rowKept,
	"a statement that takes too long":           timedOut,
	"transactions that cannot be serialized":    serialized,
	"a disk that is full":                       diskFull,
}

// Differing are those in which MariaDB and MySQL differ: how a server is identified,
// and how a statement is limited.
var Differing = Faults{
	"a replica that lacks the last commits": failedOver,
	"a transaction that keeps the row":      rowKept,
	"a statement that takes too long":       timedOut,
}

// Run runs the tests.
func (f Faults) Run(t *testing.T, h Harness) {
	for name, test := range f {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, h)
		})
	}
}

// request returns a request for the name "job".
func request(op node.Op, value string) node.Request {
	return node.Request{Op: op, Name: "job", Value: value, TTL: time.Minute, Fencing: node.Fencing{Retention: time.Hour, Window: 10 * time.Second, Token: node.Token(time.Now().UnixMicro())}}
}

// listed is the marker of a membership.
var listed = node.Guard{Membership: "list", Nodes: "one", MaxTTL: time.Minute, Window: 10 * time.Second, Quarantine: time.Minute}

// mark declares a node new.
func mark(t testing.TB, n node.Node) {
	t.Helper()
	r, err := n.(node.Guarded).Mark(t.Context(), node.MarkRequest{Mark: node.MarkFresh, Guard: &listed})
	if err != nil || r.Status != node.Granted {
		t.Errorf("mark: %v, %v", r.Status, err)
	}
}

// guarded returns a request of that membership.
func guarded(op node.Op, value string) node.Request {
	req := request(op, value)
	req.Guard = &listed
	return req
}

func do(t testing.TB, n node.Node, req node.Request) node.Reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := n.Do(ctx, req)
	check.Must(t, err)
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
	var r node.Reply
	poll.Within(t, patience, func() (err error) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		r, err = n.Do(ctx, req)
		return err
	})
	return r
}

// stillHeld checks that another client is refused, as soon as there is an answer.
func stillHeld(t testing.TB, n node.Node) {
	t.Helper()
	if r := eventually(t, n, request(node.OpAcquire, "second")); r.Status != node.Held {
		t.Errorf("another acquires: %v, want held", r.Status)
	}
}

// open opens a server, a node on it, and a connection of an operator.
func (h Harness) open(t testing.TB, settings Settings) (*servertest.OwnDatabase, node.Node, *sql.DB) {
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

func (h Harness) operator(t testing.TB, server *servertest.OwnDatabase) *sql.DB {
	t.Helper()
	db, err := sql.Open(h.Driver, server.DSN())
	check.Must(t, err)
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
