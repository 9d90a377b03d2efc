//go:build unix

package redis_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/fresh"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/stall"
	"github.com/redlatch/redlatch/internal/test/written"
	"github.com/redlatch/redlatch/node"
)

// documentedUser is the command that the documentation gives for a user that
// takes locks whose names begin with orders/; its password is PASSWORD.
func documentedUser(t testing.TB) []string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/operations.md")
	must(t, err)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "ACL SETUSER locks ") {
			return strings.Fields(line)
		}
	}
	t.Fatal("the documentation has no ACL SETUSER locks")
	return nil
}

// asUser returns the address of a server for a user and password.
func asUser(s *servertest.Server, credentials string) string {
	return strings.Replace(s.URL(), "redis://", "redis://"+credentials+"@", 1)
}

// logged returns options that log to a text.
func logged(opts redlatch.Options) (redlatch.Options, *written.Text) {
	log := &written.Text{}
	opts.Logger = slog.New(slog.NewTextHandler(log, nil))
	return opts, log
}

func TestDocumentedUserIsAllowedAllThatALockNeeds(t *testing.T) {
	t.Parallel()
	user := documentedUser(t)
	eachDriverTimed(t, func(t testing.TB, nodes func(...string) []redlatch.Node) {
		servers := servertest.Redis(t, 3)
		var addresses []string
		for _, s := range servers {
			s.Do(user...)
			addresses = append(addresses, asUser(s, "locks:PASSWORD"))
		}
		// New servers are declared so by an operator, who may SCAN.
		must(t, fresh.Declare(context.Background(), laterClient(t, redlatch.Options{}, servertest.Addresses(servers)...)))
		opts, log := logged(redlatch.Options{})
		a, b := newClient(t, nodes(addresses...), opts), newClient(t, nodes(addresses...), opts)
		best, began := time.Hour, time.Now()
		for range 3 {
			l := holdOnAll(t, a, servers, "orders/1", redlatch.LockOptions{})
			waiting := goLock(b, "orders/1", redlatch.LockOptions{})
			eventually(t, patience, func() error { return l.Extend(context.Background()) })
			eventually(t, patience, inLine(servers, "orders/1", 1))
			start := time.Now()
			mustRelease(t, l)
			l = mustGet(t, waiting, patience)
			best = min(best, time.Since(start))
			mustRelease(t, l)
		}
		if over(t, best, 200*time.Millisecond, began) {
			t.Errorf("the lock was handed on within %v at the best: there was no wake", best)
		}
		// Another database takes one right more.
		other := newClient(t, nodes(addresses[0]+"/2"), opts)
		mustRelease(t, mustLock(t, other, "orders/1", redlatch.LockOptions{}))
		for _, want := range []bool{true, false} {
			ran, err := a.Once(context.Background(), "orders/1", "monday", nil, func(context.Context, *redlatch.Lease) error { return nil })
			if ran != want || err != nil {
				t.Errorf("an occurrence ran: %v, want %v, %v", ran, want, err)
			}
		}

		if text := log.String(); strings.Contains(text, "WARN") || strings.Contains(text, "ERROR") {
			t.Errorf("the log says %s", text)
		}
		for _, s := range servers {
			if denied := s.Do("ACL", "LOG"); denied != "" {
				t.Errorf("the server denied something: %s", denied)
			}
		}
		if _, err := a.TryLock(context.Background(), "customers/1", nil); err == nil {
			t.Error("a name outside the pattern was granted, so the user's rights were not put to the test")
		}
	})
}

// TestWithoutRightToNotifyOrderIsKeptByAsking removes one right at a time. Each client
// says so once.
func TestWithoutRightToNotifyOrderIsKeptByAsking(t *testing.T) {
	t.Parallel()
	user := documentedUser(t)
	for _, without := range []string{"+subscribe", "&redlatch:1:inbox:*", "+publish"} {
		t.Run(without, func(t *testing.T) {
			t.Parallel()
			weak := leaveOut(t, user, without)
			eachDriverTimed(t, func(t testing.TB, nodes func(...string) []redlatch.Node) {
				server := servertest.Redis(t, 1)[0]
				server.Do(weak...)
				servedByAsking(t, nodes, server)
			})
		})
	}
}

// TestTurnThatCouldNotBeToldIsNotTakenAway has a waiter ask after the notification of
// the head, that nobody could publish, has expired. The head has not asked since.
func TestTurnThatCouldNotBeToldIsNotTakenAway(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t, 1)[0]
	server.Do(leaveOut(t, documentedUser(t), "+publish")...)
	n := open(t, asUser(server, "locks:PASSWORD"))[0]
	defer n.Close()
	do := func(op node.Op, value string, want node.Status) {
		t.Helper()
		r, err := n.Do(t.Context(), node.Request{Op: op, Name: "orders/1", Value: value, TTL: time.Minute, Waiting: node.Waiting{Wait: true, Ticket: int64(value[0])}, Fencing: node.Fencing{Token: node.Token(time.Now().UnixMicro()), Window: time.Minute, Retention: time.Hour}})
		if err != nil || r.Status != want {
			t.Errorf("%v by %s: %v, %v, want %v", op, value, r.Status, err, want)
		}
	}
	do(node.OpAcquire, "a holder", node.Granted)
	do(node.OpAcquire, "b head", node.Held)
	do(node.OpRelease, "a holder", node.Granted)
	time.Sleep(node.TurnLease + 30*time.Millisecond)
	do(node.OpAcquire, "c passer", node.Reserved)
	do(node.OpAcquire, "b head", node.Granted)
}

// leaveOut returns the user without one of its rights.
func leaveOut(t testing.TB, user []string, right string) []string {
	t.Helper()
	if !slices.Contains(user, right) {
		t.Fatalf("the documented user has no %s that could be left out", right)
	}
	return slices.DeleteFunc(slices.Clone(user), func(s string) bool { return s == right })
}

// servedByAsking has waiters served twice without notifications, which each says once.
func servedByAsking(t testing.TB, nodes func(...string) []redlatch.Node, server *servertest.Server) {
	t.Helper()
	address := asUser(server, "locks:PASSWORD")
	holder := newClient(t, nodes(address), redlatch.Options{})
	var waiters []*redlatch.Client
	var logs []*written.Text
	for range 3 {
		opts, log := logged(redlatch.Options{})
		logs = append(logs, log)
		waiters = append(waiters, newClient(t, nodes(address), opts))
	}
	start := time.Now()
	for range 2 {
		lease := mustLock(t, holder, "orders/1", redlatch.LockOptions{})
		var waiting []<-chan got
		for i, c := range waiters {
			waiting = append(waiting, goLock(c, "orders/1", redlatch.LockOptions{}))
			eventually(t, patience, inLine([]*servertest.Server{server}, "orders/1", i+1))
		}
		if order := handOver(t, lease, waiting, nil); !slices.IsSorted(order) {
			stall.Busy(t, starved, start) // one that asks late is passed over
			t.Errorf("they were served in the order %v", order)
		}
	}
	for i, log := range logs {
		if n := strings.Count(log.String(), "cannot send notifications"); n != 1 {
			t.Errorf("waiter %d said %d times that it is not woken, want once: %s", i, n, log)
		}
	}
}

// TestRefusalInTheMidstOfAScriptMayHaveLeftSomething has a user that may set a
// key but may not change the node queue after that: the script ends half way.
func TestRefusalInTheMidstOfAScriptMayHaveLeftSomething(t *testing.T) {
	t.Parallel()
	weak := leaveOut(t, documentedUser(t), "+zrem")
	eachDriver(t, func(t *testing.T, nodes func(...string) []redlatch.Node) {
		server := servertest.Redis(t, 1)[0]
		server.Do(weak...)
		strong, half := nodes(server.URL())[0], nodes(asUser(server, "locks:PASSWORD"))[0]
		defer strong.Close()
		defer half.Close()
		do := func(n redlatch.Node, req node.Request) (node.Reply, error) {
			req.Op, req.Name, req.TTL = node.OpAcquire, "orders/1", 20*time.Second
			return n.Do(context.Background(), req)
		}
		if reply, err := do(strong, node.Request{Value: "first"}); err != nil || reply.Status != node.Granted {
			t.Fatal(reply, err)
		}
		if reply, err := do(strong, node.Request{Value: "second", Waiting: node.Waiting{Wait: true, Ticket: time.Now().UnixMicro()}}); err != nil || reply.Rank != 1 {
			t.Fatal(reply, err)
		}
		server.Do("DEL", "orders/1")
		_, err := do(half, node.Request{Value: "third", Waiting: node.Waiting{Wait: true, Ticket: 1}})
		if err == nil || server.Do("GET", "orders/1") != "third" {
			t.Fatalf("the script did not end half way: %v, and %q has the lock", err, server.Do("GET", "orders/1"))
		}
		if errors.Is(err, node.ErrUnsent) {
			t.Errorf("it left a lock behind, and is said to have had no effect: %v", err)
		}
		wantText(t, err, "ACL does not allow")
	})
}
