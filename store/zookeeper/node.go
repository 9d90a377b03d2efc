// Package zookeeper keeps locks in a ZooKeeper ensemble.
//
//	n, err := zookeeper.Open("zookeeper://a:2181+b:2181+c:2181/locks", nil)
//	client, err := redlatch.New([]redlatch.Node{n}, nil)
//
// An ensemble is one node, however many servers it has: it works for as long as most
// of them do. It is tested with ZooKeeper 3.8.
//
// # What is stored
//
// All is below one znode, the root: /redlatch, or the path of the address. Its parent
// must exist.
//
//	ROOT/r/NAME         the row of a name, encoded; its children are timers and places
//	ROOT/m              the marker; its children are timers
//	ROOT/i/ID           the identity: a random name
//	ROOT/f              the floor: the highest fence of all rows that were removed
//	ROOT/w/PROCESS/TEXT a wake, within one multi
//
// Each write is a multi that checks the identity, the floor, the marker and the row.
// A znode's version begins at 0 again when it is removed and created anew. So each
// removal of a row writes the floor, and whatever else is missing is only created
// under a new identity: see Prepare.
//
// # The queue
//
// A place is an ephemeral sequential znode, so it ends with its session, and the order is
// the server's. An acquisition that waited is three writes: the place, the multi that
// takes the lock and removes the place, and the multi that releases it and wakes the next
// one. That one writes without a read: the wake has the row.
//
// # The clock
//
// ZooKeeper has no clock that clients can use. The node observes how time passes:
// see store/casnode. A caller that may leave before a lock expires leaves a timer: an
// ephemeral znode of a session of its own. Nobody keeps that session alive and nobody
// closes it. So it ends after its timeout, counted by the ensemble's leader. Above the
// server's maxSessionTimeout (by default 40 s) there is no timer.
//
// # Reads
//
// A server may lag behind, and sync does not help for sure: it is no operation of a
// quorum, and a leader that was deposed and does not know it yet answers from what it
// has. That is enough if a write follows, which checks what was read. An answer without
// a write is asked for again, and then a write of the same session comes before the
// read. After a write that was refused, and for display, a read begins with sync. That a
// waiter with a place has to wait longer need not be sure: putting the place was a write
// before the read, and it asks again. The marker, the identity and the floor are then read
// once in 10 s: a write checks them.
//
// # The client
//
// It is github.com/go-zookeeper/zk: the successor of samuel/go-zookeeper, which is
// archived, and what Prometheus and Vault use; the wrappers in the manner of Curator
// build on the archived one. It needs nothing but the standard library, repeats
// no request by itself, sends the last zxid that a session has seen when it
// reconnects, and takes a dialer, so that TLS works. What it lacks is added here: it
// has no contexts, resolves names once, does not say which session timeout the server has
// granted, and knows no watches of all that is below a znode. Those are for wakes, and
// take a server from 3.6 on; with an older one waiters poll.
package zookeeper

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/redlatch/redlatch/internal/optional"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/casnode"
)

// Options are the settings of a Node. The zero value works.
type Options struct {
	// Root is the znode below which everything is kept. Its parent must exist.
	// Defaults to the path of the address, or /redlatch.
	Root string
	// User and Password are those of digest authentication. The znodes then belong
	// to this user alone, so all clients need the same. Default to those of the
	// address, or none: the znodes are open to everybody.
	User, Password string
	// TLS is for connections that are encrypted. Defaults to nil: they are not.
	TLS *tls.Config
	// Session is the timeout of the session, of which no lock depends. Defaults to
	// 10 s.
	Session time.Duration
	// MaxBuffer is the server's jute.maxbuffer, in bytes: a longer request is refused
	// before it is sent, since the server would close the connection. Defaults to
	// 1,048,575, as on the server.
	MaxBuffer int
	// Poll has waiters poll, and uses no watches. Defaults to false.
	Poll bool
	// Name names the node in errors and in the membership. Defaults to
	// zookeeper://SERVERS/ROOT, with the servers in alphabetical order.
	Name string
}

const (
	defaultRoot    = "/redlatch"
	defaultSession = 10 * time.Second
	defaultBuffer  = 1<<20 - 1
)

// Node keeps locks in a ZooKeeper ensemble. It is safe for use by many goroutines
// and clients.
type Node struct {
	*casnode.Node
	store *store
}

// From returns a node over a connection that the program has. Close does not close the
// connection. opts may be nil. Set Options.Name if the clients use several servers:
// otherwise the node is named after the server that this connection leads to, and
// other clients do not know it by that name. With TLS or a user set those, too: timers
// have connections of their own.
func From(conn *zk.Conn, opts *Options) (*Node, error) {
	if conn == nil {
		return nil, &node.ConfigError{Field: "conn", Value: "nil", Bound: "a connection"}
	}
	o := optional.Value(opts)
	if o.Name == "" {
		return nil, &node.ConfigError{Field: "Name", Value: "", Bound: "the same for all clients, such as zookeeper://locks"}
	}
	return newNode(nil, conn, o)
}

// newNode returns a node for servers, or for a connection.
func newNode(servers []string, conn *zk.Conn, o Options) (*Node, error) {
	o.Root, o.Session, o.MaxBuffer = cmp.Or(o.Root, defaultRoot), cmp.Or(o.Session, defaultSession), cmp.Or(o.MaxBuffer, defaultBuffer)
	if !strings.HasPrefix(o.Root, "/") || o.Root == "/" || strings.HasSuffix(o.Root, "/") || strings.Contains(o.Root, "//") || strings.ContainsAny(o.Root, " @\x00") {
		return nil, &node.ConfigError{Field: "Root", Value: o.Root, Bound: "a path such as /apps/locks"}
	}
	if o.Session < time.Second || o.Session > time.Hour {
		return nil, &node.ConfigError{Field: "Session", Value: o.Session, Bound: "between 1 s and 1 h"}
	}
	if o.MaxBuffer < 4096 {
		return nil, &node.ConfigError{Field: "MaxBuffer", Value: o.MaxBuffer, Bound: "4,096 bytes or more"}
	}
	if o.User == "" && o.Password != "" || strings.Contains(o.User, ":") {
		return nil, &node.ConfigError{Field: "User", Value: o.User, Bound: "a user without a colon, if there is a password"}
	}
	o.Name = cmp.Or(o.Name, "zookeeper://"+strings.Join(slices.Sorted(slices.Values(servers)), "+")+o.Root)
	s := &store{link: link{servers: servers, opts: o, conn: conn}, root: o.Root, name: o.Name, acl: o.acl(),
		sights: map[string]sight{}, heard: map[string]stored{}, own: map[[2]string]string{}, lived: map[string]int64{}}
	return &Node{casnode.New(s, &casnode.Options{Poll: o.Poll}), s}, nil
}

// call is a request of a Node, for the store that executes it.
type call struct {
	row string
	// swapped says that the answer rests on a Swap, and refused that one was refused:
	// what was read may have been old.
	swapped, refused bool
	// display says that the answer is only for display, and probe that it is not
	// used if no Swap was done.
	display, probe bool
	// queued says that the caller's place was put, and what was read is from after that;
	// waits that it has one then; brief that many children of the row are not read.
	queued, waits, brief bool
}

type callKey struct{}

func (c *call) in(ctx context.Context) context.Context { return context.WithValue(ctx, callKey{}, c) }

// callOf returns the request that the context is of. One that is not known counts.
func callOf(ctx context.Context) *call {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c
	}
	return new(call)
}

// Do executes one request.
func (n *Node) Do(ctx context.Context, req node.Request) (reply node.Reply, err error) {
	err = n.sure(ctx, req.Name, req.Op != node.OpInspect, func(ctx context.Context) (err error) {
		reply, err = n.Node.Do(ctx, req)
		callOf(ctx).waits = reply.Rank > 0
		return err
	})
	return reply, err
}

// Mark reads or writes the marker.
func (n *Node) Mark(ctx context.Context, req node.MarkRequest) (reply node.MarkReply, err error) {
	err = n.sure(ctx, casnode.MarkerName, true, func(ctx context.Context) (err error) { reply, err = n.Node.Mark(ctx, req); return err })
	return reply, err
}

// Records reads or writes the records of a name.
func (n *Node) Records(ctx context.Context, req node.RecordsRequest) (reply node.RecordsReply, err error) {
	err = n.sure(ctx, req.Name, true, func(ctx context.Context) (err error) { reply, err = n.Node.Records(ctx, req); return err })
	return reply, err
}

// sure executes a request about a row. If its answer rests on a write, the write has
// checked what was read. If not, the answer might be that of a server that was deposed.
// Then it is executed again, with a write before the read.
func (n *Node) sure(ctx context.Context, row string, writes bool, execute func(ctx context.Context) error) error {
	began := time.Now()
	if end, limited := ctx.Deadline(); limited { // the client must not give up before it is told why
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-end.Sub(began)/20))
		defer cancel()
	}
	if writes {
		c := &call{row: row, probe: true}
		if err := execute(c.in(ctx)); err != nil || c.swapped || c.queued && c.waits {
			return n.store.busy(began, err)
		}
	}
	return n.store.busy(began, execute((&call{row: row}).in(ctx)))
}

// List calls found for every name that is held or waited for. It is for display.
func (n *Node) List(ctx context.Context, prefix string, found func(node.Listing)) error {
	return n.Node.List((&call{display: true}).in(ctx), prefix, found)
}

// Look returns what the node knows about one name. It is for display.
func (n *Node) Look(ctx context.Context, name string) (node.Listing, error) {
	return n.Node.Look((&call{display: true}).in(ctx), name)
}

// acl is that of every znode that is created.
func (o *Options) acl() []zk.ACL {
	if o.User != "" {
		return zk.AuthACL(zk.PermAll)
	}
	return zk.WorldACL(zk.PermAll)
}

func (o *Options) digest() string { return fmt.Sprintf("%s:%s", o.User, o.Password) }
