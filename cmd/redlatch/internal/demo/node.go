package demo

import (
	"cmp"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/redlatch/redlatch/node"
)

// answer is what a node in another process replies.
type answer struct {
	Reply node.Reply
	Error string
}

// serveNode answers requests for the node until the listener is closed. Each has a
// connection of its own.
func serveNode(l net.Listener, n node.Node) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			var req node.Request
			if gob.NewDecoder(conn).Decode(&req) != nil {
				return // the client has left
			}
			var a answer
			var err error
			if a.Reply, err = n.Do(context.Background(), req); err != nil {
				a.Error = err.Error()
			}
			_ = gob.NewEncoder(conn).Encode(a) // the client may have left
		}()
	}
}

// remoteNode is a node in another process.
type remoteNode struct {
	address string
	closed  atomic.Bool
}

var _ node.Node = (*remoteNode)(nil)

// Do executes one request.
func (n *remoteNode) Do(ctx context.Context, req node.Request) (node.Reply, error) {
	err := ctx.Err()
	if n.closed.Load() {
		err = node.ErrClosed
	}
	var conn net.Conn
	if err == nil {
		conn, err = new(net.Dialer).DialContext(ctx, "tcp", n.address)
	}
	if err != nil {
		return node.Reply{}, fmt.Errorf("%w: %w", node.ErrUnsent, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	var a answer
	if err = gob.NewEncoder(conn).Encode(req); err == nil {
		err = gob.NewDecoder(conn).Decode(&a)
	}
	switch {
	case err != nil:
		return node.Reply{}, cmp.Or(ctx.Err(), err)
	case a.Error != "":
		return a.Reply, errors.New(a.Error)
	}
	return a.Reply, nil
}

// Close ends the use of the node.
func (n *remoteNode) Close() error {
	n.closed.Store(true)
	return nil
}

func (n *remoteNode) String() string { return n.address }
