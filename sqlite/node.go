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

// A Node keeps locks in a file of this machine. It may be used by several
// goroutines and clients at the same time.
type Node struct {
	path string
	id   string
	file os.FileInfo
	time timekeeper

	// turn is a mutex that can be waited for with a context.
	turn chan struct{}

	// The fields below belong to whoever has the turn.
	db     *sql.DB
	conn   *sql.Conn
	stmts  map[query]*sql.Stmt
	closed bool
}

var (
	_ node.Identifier = (*Node)(nil)
	_ node.Slow       = (*Node)(nil)
)

// Do carries out one request, as one transaction. It waits for other
// processes until the context ends.
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
		start = beginRead // which no writer can hold up
	}
	if err := n.begin(ctx, start); err != nil {
		return node.Reply{}, n.unsent(err)
	}
	reply, err := n.carryOut(req)
	if err != nil {
		// Nothing is in the file before the commit, and this transaction
		// will see none: should the rollback fail too, the next begin does,
		// and rolls back again.
		n.rollback()
		return node.Reply{}, n.unsent(err)
	}
	if err := n.exec(commit); err != nil {
		n.rollback()
		if code(err) == codes.SQLITE_BUSY {
			return node.Reply{}, n.unsent(err)
		}
		// The disk failed while it was being written to. Whether others see
		// the transaction is not for us to know.
		return node.Reply{}, explain(n.path, err)
	}
	return reply, nil
}

// String returns "sqlite:" and the absolute path of the file.
func (n *Node) String() string { return "sqlite:" + n.path }

// Identity returns a text that is in the file, and so the same by whichever
// path it was opened.
func (n *Node) Identity(context.Context) (string, time.Time, error) {
	return "sqlite:" + n.id, time.Now(), nil
}

// TimeLimit is longer than a server's: many processes may be in line for the
// file, and a busy disk is no sign that it is gone.
func (n *Node) TimeLimit() time.Duration { return 5 * time.Second }

// Close closes the file. Locks in it stay as they are.
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

// enter waits for the turn.
func (n *Node) enter(ctx context.Context) error {
	// Of two cases that are ready select takes either, and a context that
	// has ended must never lead to an effect.
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

// begin starts a transaction once no other process is in one.
func (n *Node) begin(ctx context.Context, how query) error {
	if err := n.sameFile(); err != nil {
		return err
	}
	err := retry(ctx, func() error { return n.exec(how) })
	if err != nil {
		n.rollback()
	}
	return err
}

// sameFile checks that the path still leads to the file that is open. Were it
// replaced, we would go on alone with the old one while others use the new.
func (n *Node) sameFile() error {
	if n.file == nil || runtime.GOOS == "windows" { // where an open file cannot be removed
		return nil
	}
	info, err := os.Stat(n.path)
	if err != nil || !os.SameFile(info, n.file) {
		return errReplaced
	}
	return nil
}

// rollback ends a transaction, if there is one. Its error says that there was
// none, or what the next begin will say again.
func (n *Node) rollback() { _ = n.exec(rollback) }

// check refuses a request that could only be carried out wrongly.
func check(req node.Request) error {
	switch {
	case req.Mode != node.Exclusive:
		return faultf("was asked for the lock mode %d, which is unknown", req.Mode)
	case req.Op < node.OpAcquire || req.Op > node.OpRepair && req.Op != node.OpBreak:
		return faultf("was asked for the operation %d, which is unknown", req.Op)
	case req.Token > node.MaxToken:
		return faultf("was given the token %d, above the largest, %d", uint64(req.Token), uint64(node.MaxToken))
	case req.TTL <= 0 && (req.Op == node.OpAcquire || req.Op == node.OpExtend || req.Op == node.OpRepair):
		return faultf("was given the time to live %v: it must be positive", req.TTL)
	}
	return nil
}
