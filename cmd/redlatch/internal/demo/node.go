package demo

import (
	"context"
	"fmt"
	"net"
	"net/rpc"
	"sync"

	"github.com/redlatch/redlatch/node"
)

// nodeService is a node for other processes.
type nodeService struct{ node node.Node }

// Do executes one request.
func (s nodeService) Do(req node.Request, reply *node.Reply) (err error) {
	*reply, err = s.node.Do(context.Background(), req)
	return err
}

// serveNode answers requests for the node until the listener is closed.
func serveNode(l net.Listener, n node.Node) {
	server := rpc.NewServer()
	if err := server.RegisterName("Node", nodeService{n}); err != nil {
		panic("redlatch: a node has no method Do: " + err.Error())
	}
	server.Accept(l)
}

// remoteNode is a node in another process.
type remoteNode struct {
	address string

	mu     sync.Mutex // guards what follows
	conn   *rpc.Client
	closed bool
}

var _ node.Node = (*remoteNode)(nil)

// Do executes one request.
func (n *remoteNode) Do(ctx context.Context, req node.Request) (node.Reply, error) {
	conn, err := n.connect(ctx)
	if err != nil {
		return node.Reply{}, fmt.Errorf("%w: %w", node.ErrUnsent, err)
	}
	reply := new(node.Reply)
	call := conn.Go("Node.Do", req, reply, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
	case <-ctx.Done():
		return node.Reply{}, ctx.Err()
	}
	if _, refused := call.Error.(rpc.ServerError); call.Error != nil && !refused {
		n.hangUp(conn)
	}
	return *reply, call.Error
}

func (n *remoteNode) connect(ctx context.Context) (*rpc.Client, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.closed:
		return nil, node.ErrClosed
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case n.conn != nil:
		return n.conn, nil
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", n.address)
	if err != nil {
		return nil, err
	}
	n.conn = rpc.NewClient(conn)
	return n.conn, nil
}

// hangUp drops a connection that failed, unless there is another already.
func (n *remoteNode) hangUp(conn *rpc.Client) {
	n.mu.Lock()
	defer n.mu.Unlock()
	conn.Close()
	if n.conn == conn {
		n.conn = nil
	}
}

// Close closes the connection.
func (n *remoteNode) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	if n.conn != nil {
		n.conn.Close()
	}
	return nil
}

func (n *remoteNode) String() string { return n.address }
