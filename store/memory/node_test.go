package memory

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/node"
)

func request(op node.Op, name, value string) node.Request {
	return node.Request{
		Op: op, Name: name, Value: value,
		TTL: time.Minute, Fencing: node.Fencing{Window: 10 * time.Second, Retention: time.Hour},
	}
}

// do executes a request that must not fail.
func do(t testing.TB, n node.Node, req node.Request) node.Reply {
	t.Helper()
	r, err := n.Do(context.Background(), req)
	check.Must(t, err)
	return r
}

func TestALockExpiresInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(nil)
		do(t, n, request(node.OpAcquire, "name", "one"))
		time.Sleep(time.Minute - 1)
		if r := do(t, n, request(node.OpAcquire, "name", "two")); r.Status != node.Held || r.Left != 1 {
			t.Errorf("%v for %v yet, want held for 1ns yet", r.Status, r.Left)
		}
		time.Sleep(time.Nanosecond)
		if r := do(t, n, request(node.OpAcquire, "name", "two")); r.Status != node.Granted {
			t.Errorf("%v after the time to live", r.Status)
		}
	})
}

func TestANodeThatIsDownDoesNothing(t *testing.T) {
	n := New(nil)
	do(t, n, request(node.OpAcquire, "name", "one"))
	outage := errors.New("no route to host")
	n.SetDown(outage)
	_, err := n.Do(context.Background(), request(node.OpRelease, "name", "one"))
	if !errors.Is(err, outage) || !errors.Is(err, node.ErrUnsent) {
		t.Errorf("while down: %v", err)
	}
	n.SetDown(nil)
	if r := do(t, n, request(node.OpInspect, "name", "")); r.Status != node.Held {
		t.Errorf("up again: %v", r.Status)
	}
}

func TestANodeGoesByItsOwnClock(t *testing.T) {
	late := func() time.Time { return time.Now().Add(-time.Hour) }
	n := New(&Options{Clock: late})
	req := request(node.OpAcquire, "name", "one")
	req.Token = node.Token(time.Now().UnixMicro())
	if r := do(t, n, req); r.Status != node.Ahead || time.Since(r.Now) < time.Hour {
		t.Errorf("a clock an hour late: %v at %v", r.Status, r.Now)
	}
}

func TestNodesAreToldApart(t *testing.T) {
	names, ids := map[string]bool{}, map[string]bool{}
	for _, n := range append(Nodes(3), New(nil), New(nil)) {
		id, _, err := n.(node.Identifier).Identity(context.Background())
		check.Must(t, err)
		names[n.String()], ids[id] = true, true
	}
	if len(names) != 5 || len(ids) != 5 {
		t.Errorf("5 nodes have the names %v and the identities %v", names, ids)
	}
}
