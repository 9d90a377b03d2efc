package sqlite

import (
	"context"
	"database/sql"
	"os"
	"runtime"
	"time"

	"github.com/redlatch/redlatch/node"
	codes "modernc.org/sqlite/lib"
)

// A Node keeps locks in a file on this machine. Several goroutines and clients
// may use it at the same time.
type Node struct {
	path string
	id   string
	file os.FileInfo
	time timekeeper

	// turn is a mutex that can be waited for with a context.
	turn chan struct{}

	// turn guards the fields below.
	db     *sql.DB
	conn   *sql.Conn
	stmts  map[query]*sql.Stmt
	closed bool
}

var (
	_ node.Identifier = (*Node)(nil)
	_ node.Slow       = (*Node)(nil)
)

// Do executes one request, as one transaction. It waits for other processes
// until the context ends.
func (n *Node) Do(ctx context.Context, req node.Request) (node.Reply, error) {
	if err := check(req); err != nil {
		return node.Reply{}, n.unsent(err)
	}
	if err := n.enter(ctx); err != nil {
		return node.Reply{}, n.unsent(err)
	}
	defer n.leave()

	if req.Op == node.OpAcquire && req.Wait {
		if reply, ok := n.glance(ctx, req); ok {
			return reply, nil
		}
	}
	start := beginWrite
	if req.Op == node.OpInspect {
		start = beginRead // a writer does not block it
	}
	if err := n.beginFor(ctx, start, pauseFor(req)); err != nil {
		return node.Reply{}, n.unsent(err)
	}
	reply, err := n.carryOut(req)
	if err != nil {
		// Nothing is in the file before the commit, and there will be no
		// commit: if the rollback fails too, the next begin fails and rolls
		// back again.
		n.rollback()
		return node.Reply{}, n.unsent(err)
	}
	if err := n.exec(commit); err != nil {
		n.rollback()
		if code(err) == codes.SQLITE_BUSY {
			return node.Reply{}, n.unsent(err)
		}
		// The disk failed during the write. We cannot know whether others see
		// the transaction.
		return node.Reply{}, explain(n.path, err)
	}
	return reply, nil
}

// String returns "sqlite:" and the absolute path of the file.
func (n *Node) String() string { return "sqlite:" + n.path }

// Identity returns a text that is stored in the file, and so is the same by
// every path.
func (n *Node) Identity(context.Context) (string, time.Time, error) {
	return "sqlite:" + n.id, time.Now(), nil
}

// TimeLimit is longer than a server's: many processes may wait for the file,
// and a busy disk does not mean that it is gone.
func (n *Node) TimeLimit() time.Duration { return 5 * time.Second }

// Close closes the file. Locks in it are not changed.
func (n *Node) Close() error {
	n.turn <- struct{}{}
	defer n.leave()
	if n.closed {
		return nil
	}
	n.closed = true
	var err error
	for _, s := range n.stmts {
		s.Close()
	}
	if n.conn != nil {
		err = n.conn.Close()
	}
	if n.db != nil {
		if e := n.db.Close(); err == nil {
			err = e
		}
	}
	if err != nil {
		return explain(n.path, err)
	}
	return nil
}

// enter waits for the mutex.
func (n *Node) enter(ctx context.Context) error {
	// If both cases are ready, select takes either of them. A context that has
	// ended must never lead to an effect.
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case n.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if n.closed {
		n.leave()
		return errClosed
	}
	return nil
}

func (n *Node) leave() { <-n.turn }

// begin starts a transaction when no other process has one.
func (n *Node) begin(ctx context.Context, how query) error {
	return n.beginFor(ctx, how, mostPause)
}

// beginFor is begin, with the longest pause between two tries.
func (n *Node) beginFor(ctx context.Context, how query, most time.Duration) error {
	if err := n.sameFile(); err != nil {
		return err
	}
	err := retry(ctx, most, func() error { return n.exec(how) })
	if err != nil {
		n.rollback()
	}
	return err
}

// sameFile checks that the path still leads to the open file. If it was
// replaced, we would use the old file alone while others use the new one.
func (n *Node) sameFile() error {
	if n.file == nil || runtime.GOOS == "windows" { // an open file cannot be removed there
		return nil
	}
	info, err := os.Stat(n.path)
	if err != nil || !os.SameFile(info, n.file) {
		return errReplaced
	}
	return nil
}

// rollback ends a transaction, if there is one. Its error is ignored: there was
// no transaction, or the next begin returns the same error.
func (n *Node) rollback() { _ = n.exec(rollback) }

// check refuses a request that is not valid.
func check(req node.Request) error {
	switch {
	case req.Op < node.OpAcquire || req.Op > node.OpRecall || req.Op == node.OpOffer || req.Op == node.OpMark:
		return faultf("was asked for the operation %d, which is unknown", req.Op)
	case req.Token > node.MaxToken:
		return faultf("was given the token %d, above the largest, %d", uint64(req.Token), uint64(node.MaxToken))
	case req.TTL <= 0 && (req.Op == node.OpAcquire || req.Op == node.OpExtend || req.Op == node.OpRepair):
		return faultf("was given the time to live %v: it must be positive", req.TTL)
	}
	if err := checkOccurrence(req); err != nil {
		return err
	}
	return req.Share.Check()
}
