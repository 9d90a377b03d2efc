//go:build unix

package rowtest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
)

// Deposed freezes the leader of an ensemble, has the others elect one and grant a lock,
// and sends requests to the former leader, which finds them in its socket when it goes
// on. It may answer before it knows that it was deposed. leader waits until one of the
// servers leads, and open returns a node on servers.
func Deposed(t *testing.T, servers []*servertest.Database,
	leader func(t testing.TB, servers []*servertest.Database) (leads *servertest.Database, others []*servertest.Database),
	open func(t testing.TB, servers ...*servertest.Database) node.Node,
) {
	for round := range 2 {
		former, others := leader(t, servers)
		ask := func(op node.Op, value string) node.Request {
			req := request(op, value)
			req.Name = fmt.Sprint("job ", round)
			return req
		}
		record := func(ctx context.Context, n node.Node, op node.Op) (node.Status, error) {
			r, err := n.(node.Recorder).Records(ctx, node.RecordsRequest{Op: op, Name: fmt.Sprint("job ", round), Occurrence: "today", Retention: time.Hour})
			return r.Status, err
		}
		// Each has a session of its own: a server answers no read of a session before
		// the session's writes.
		requests := map[node.Op]node.Request{
			node.OpInspect: ask(node.OpInspect, ""), node.OpCheck: {},
			node.OpAcquire: ask(node.OpAcquire, "two"), node.OpExtend: ask(node.OpExtend, "one"),
		}
		right := map[node.Op]node.Status{node.OpInspect: node.Held, node.OpCheck: node.Granted, node.OpAcquire: node.Held, node.OpExtend: node.Granted}
		stale := map[node.Op]node.Node{}
		for op := range requests {
			stale[op] = open(t, former)
			if r := eventually(t, stale[op], ask(node.OpInspect, "")); r.Status != node.Absent {
				t.Errorf("round %d: before it is taken the lock is %v", round, r.Status)
			}
		}
		fresh := open(t, others...)
		check.Must(t, former.Freeze())
		leader(t, others)
		if r := eventually(t, fresh, ask(node.OpAcquire, "one")); r.Status != node.Granted {
			t.Errorf("round %d: an acquisition by the others: %v", round, r.Status)
		}
		if status, err := record(t.Context(), fresh, node.OpComplete); err != nil || status != node.Granted {
			t.Errorf("round %d: a record by the others: %v, %v", round, status, err)
		}
		var all sync.WaitGroup
		for op, req := range requests {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
				defer cancel()
				r, err := node.Reply{}, error(nil)
				if op == node.OpCheck {
					r.Status, err = record(ctx, stale[op], op)
				} else {
					r, err = stale[op].Do(ctx, req)
				}
				if err == nil && r.Status != right[op] {
					t.Errorf("round %d: %v by the former leader: %v", round, op, r.Status)
				}
			})
		}
		time.Sleep(200 * time.Millisecond) // they are in the socket
		check.Must(t, former.Thaw())
		all.Wait()
		if r := eventually(t, fresh, ask(node.OpExtend, "one")); r.Status != node.Granted {
			t.Errorf("round %d: the holder's extension: %v", round, r.Status)
		}
		for _, n := range stale {
			n.Close()
		}
		fresh.Close()
	}
}
