//go:build unix

package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/rowtest"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/stall"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/risk"
	"github.com/redlatch/redlatch/store/casnode"
)

// patience is how long a test waits for what should come soon.
const patience = 2 * time.Minute

func request(op node.Op, value string, ttl time.Duration) node.Request {
	return node.Request{Op: op, Name: "job", Value: value, TTL: ttl, Fencing: node.Fencing{Retention: time.Hour, Window: time.Minute, Token: node.Token(time.Now().UnixMicro())}}
}

// eventually repeats a request until it has an answer.
func eventually(t testing.TB, n node.Node, req node.Request) (r node.Reply) {
	t.Helper()
	poll.Within(t, patience, func() (err error) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		r, err = n.Do(ctx, req)
		return err
	})
	return r
}

func want(t testing.TB, n node.Node, req node.Request, status node.Status) {
	t.Helper()
	if r := eventually(t, n, req); r.Status != status {
		t.Errorf("%v by %s: %v, want %v", req.Op, req.Value, r.Status, status)
	}
}

// leader waits until one of the servers leads the others.
func leader(t testing.TB, servers []*servertest.Database) (leads *servertest.Database, others []*servertest.Database) {
	t.Helper()
	poll.Within(t, patience, func() error {
		leads, others = nil, nil
		for _, s := range servers {
			if answer, _ := servertest.AskZooKeeper(s.Addr(), "srvr", time.Second); strings.Contains(answer, "Mode: leader\n") {
				leads = s
			} else {
				others = append(others, s)
			}
		}
		if leads == nil {
			return errors.New("there is no leader")
		}
		return nil
	})
	return leads, others
}

// through opens a node whose only way to the server is a proxy, and whose session lasts
// for a second, and another node with the same root.
func through(t testing.TB) (proxy *servertest.Proxy, n, other *Node) {
	t.Helper()
	proxy = servertest.NewProxy(t, server(t))
	address := fresh(t)
	n, err := Open(strings.Replace(address, server(t).Addr(), proxy.Addr(), 1), &Options{Session: time.Second, Name: "zookeeper://locks"})
	check.Must(t, err)
	t.Cleanup(func() { n.Close() })
	return proxy, n, open(t, address)
}

// TestLockOutlivesTheSession cuts a node off for longer than its session lasts.
func TestLockOutlivesTheSession(t *testing.T) {
	t.Parallel()
	proxy, n, other := through(t)
	want(t, n, request(node.OpAcquire, "one", time.Minute), node.Granted)
	session := n.store.conn.SessionID()
	proxy.Partition(true)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	if _, err := n.Do(ctx, request(node.OpExtend, "one", time.Minute)); err == nil {
		t.Error("an extension was granted without a server")
	}
	cancel()
	time.Sleep(3 * time.Second)
	want(t, other, request(node.OpAcquire, "two", time.Minute), node.Held)
	proxy.Partition(false)
	want(t, n, request(node.OpExtend, "one", time.Minute), node.Granted)
	want(t, other, request(node.OpAcquire, "two", time.Minute), node.Held)
	if n.store.conn.SessionID() == session {
		t.Error("the session has not expired: the test shows nothing")
	}
	want(t, n, request(node.OpRelease, "one", time.Minute), node.Granted)
	want(t, other, request(node.OpAcquire, "two", time.Minute), node.Granted)
}

// TestSlowServerIsNoOutage has each answer take most of the time limit, as in a crowd of
// new processes. What was done in time counts.
func TestSlowServerIsNoOutage(t *testing.T) {
	t.Parallel()
	stall.Retry(t, slowServer)
}

func slowServer(t testing.TB) {
	proxy := servertest.NewProxy(t, server(t))
	address := fresh(t)
	n, other := open(t, strings.Replace(address, server(t).Addr(), proxy.Addr(), 1)), open(t, address)
	want(t, other, request(node.OpAcquire, "holder", time.Minute), node.Granted)
	proxy.Set(servertest.Weather{Replies: servertest.Direction{Delay: 1300 * time.Millisecond}})
	c, err := redlatch.New([]redlatch.Node{n}, &redlatch.Options{Guard: redlatch.GuardOff, NodeTimeout: 2 * time.Second})
	check.Must(t, err)
	defer c.Close()
	locked := make(chan error, 1)
	go func() {
		_, err := c.Lock(context.Background(), "job", nil)
		locked <- err
	}()
	slowest := time.Duration(0)
	poll.Within(t, patience, func() error {
		began := time.Now()
		l, err := other.Look(t.Context(), "job")
		if slowest = max(slowest, time.Since(began)); err != nil || l.Waiting > 0 || len(locked) > 0 {
			return err
		}
		return errors.New("nobody waits")
	})
	proxy.Set(servertest.Weather{})
	want(t, other, request(node.OpRelease, "holder", time.Minute), node.Granted)
	if err := <-locked; err != nil {
		if slowest > 300*time.Millisecond {
			stall.TooLate(t, "%v, and the server itself took %v", err, slowest)
		}
		t.Fatalf("Lock: %v", err)
	}
	proxy.SwallowReplies(true)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := n.Do(ctx, request(node.OpInspect, "holder", time.Minute)); !errors.Is(err, node.ErrUnsent) || errors.Is(err, node.ErrContended) {
		t.Errorf("without an answer: %v", err)
	}
}

// TestPlacesGoWithTheirSession cuts a waiter off for longer than its session lasts. When
// it asks again, it has a place.
func TestPlacesGoWithTheirSession(t *testing.T) {
	t.Parallel()
	proxy, n, other := through(t)
	want(t, other, request(node.OpAcquire, "holder", time.Minute), node.Granted)
	waits := request(node.OpAcquire, "waiter", time.Minute)
	waits.Wait, waits.Ticket = true, 1
	want(t, n, waits, node.Held)
	places := func(count int) {
		t.Helper()
		poll.Within(t, patience, func() error {
			all, err := other.store.Places(t.Context(), "")
			if err == nil && len(all) != count {
				err = fmt.Errorf("the places are %v", all)
			}
			return err
		})
	}
	places(1)
	proxy.Partition(true)
	places(0)
	proxy.Partition(false)
	want(t, n, waits, node.Held)
	places(1)
	want(t, other, request(node.OpRelease, "holder", time.Minute), node.Granted)
	waits.Token = node.Token(time.Now().UnixMicro())
	want(t, n, waits, node.Granted)
	places(0)
}

// TestWriteWhoseAnswerIsLostIsOfUnknownOutcome swallows the replies of a server, until
// the session has expired.
func TestWriteWhoseAnswerIsLostIsOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	proxy, n, other := through(t)
	check.Must(t, n.store.Prepare(t.Context()))
	seen := n.store.mustRead(t, "job")
	proxy.SwallowReplies(true)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	row := version("job", "one")
	done, _, err := n.store.Swap(ctx, seen, casnode.Write{Row: row})
	if done || err == nil || errors.Is(err, node.ErrUnsent) {
		t.Errorf("a Swap without a reply: %v, %v", done, err)
	}
	if got := other.store.mustRead(t, "job").Row.Version; got != row.Version {
		t.Errorf("the row has version %q: the test shows nothing", got)
	}
	proxy.SwallowReplies(false)
	poll.Within(t, patience, func() error {
		done, _, err := n.store.Swap(t.Context(), seen, casnode.Write{Row: version("job", "two")})
		if done {
			exclusion.Never(t, "a Swap of what was read before was done")
		}
		return err
	})
}

// TestReadIsInOneSession has the session expire between two readings of a Read. The next
// session may be on a server that lags behind what the first one has seen.
func TestReadIsInOneSession(t *testing.T) {
	t.Parallel()
	proxy, n, _ := through(t)
	want(t, n, request(node.OpAcquire, "one", time.Minute), node.Granted)
	times := 0
	n.store.between = func() {
		if times++; times > 1 {
			return
		}
		session := n.store.conn.SessionID()
		proxy.Partition(true)
		proxy.Cut()
		time.Sleep(3 * time.Second)
		proxy.Partition(false)
		proxy.Cut()
		poll.Until(t, "there is another session", func() bool {
			now := n.store.conn.SessionID()
			return now != 0 && now != session && n.store.conn.State() == zk.StateHasSession
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	seen, err := n.store.Read((&call{probe: true}).in(ctx), "job")
	if err != nil || seen.Row.Version == "" || times < 2 {
		t.Errorf("it read %d times: %q, %v", times, seen.Row.Version, err)
	}
}

func TestLockOutlivesARestartOfTheServer(t *testing.T) {
	t.Parallel()
	const ttl = 10 * time.Minute // a JVM may take long to start
	servers, address := start(t, 1)
	one, two := open(t, address), open(t, address)
	want(t, one, request(node.OpAcquire, "one", ttl), node.Granted)
	servers[0].Kill()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	_, err := two.Do(ctx, request(node.OpAcquire, "two", ttl))
	cancel()
	if !errors.Is(err, ErrNoSession) || !errors.Is(err, node.ErrUnsent) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("without a server: %v", err)
	}
	check.Must(t, servers[0].Start())
	want(t, two, request(node.OpAcquire, "two", ttl), node.Held)
	want(t, one, request(node.OpExtend, "one", ttl), node.Granted)
	want(t, one, request(node.OpRelease, "one", ttl), node.Granted)
	want(t, two, request(node.OpAcquire, "two", ttl), node.Granted)
}

// TestMemberWithoutAQuorumSaysSo has one of three servers left.
func TestMemberWithoutAQuorumSaysSo(t *testing.T) {
	t.Parallel()
	servers, _ := start(t, 3)
	n := open(t, "zookeeper://"+servers[0].Addr())
	want(t, n, request(node.OpAcquire, "one", time.Minute), node.Granted)
	servers[1].Kill()
	servers[2].Kill()
	poll.Within(t, patience, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if _, err := n.Do(ctx, request(node.OpExtend, "one", time.Minute)); !errors.Is(err, ErrNotServing) {
			return fmt.Errorf("it answers %v", err)
		}
		return nil
	})
	check.Must(t, servers[1].Start())
	want(t, n, request(node.OpExtend, "one", time.Minute), node.Granted)
}

func TestDeposedLeaderGivesNoAnswerThatCounts(t *testing.T) {
	t.Parallel()
	servers, _ := start(t, 3, "syncLimit=4")
	rowtest.Deposed(t, servers, leader, func(t testing.TB, servers ...*servertest.Database) node.Node {
		n, err := Open("zookeeper://"+strings.Join(servertest.Hosts(servers), "+"), &Options{Session: 30 * time.Second})
		check.Must(t, err)
		return n
	})
}

// lagging starts an ensemble in which a follower hears from the leader late.
func lagging(t testing.TB, late time.Duration) (leads, lags *servertest.Database) {
	t.Helper()
	servers, _ := start(t, 3)
	leads, others := leader(t, servers)
	lags = others[0]
	link := servertest.NewProxy(t, leads)
	of := regexp.MustCompile(fmt.Sprintf(`(?m)^(server\.%d=)([^:]+:\d+)`, slices.Index(servers, leads)+1))
	lags.Config = func(text string) string {
		link.LeadTo(of.FindStringSubmatch(text)[2])
		return of.ReplaceAllString(text, "${1}"+link.Addr())
	}
	lags.Kill()
	check.Must(t, lags.Start())
	link.Set(servertest.Weather{Replies: servertest.Direction{Delay: late}})
	return leads, lags
}

// TestReadShowsWhatAnotherServerHasAcknowledged writes through the leader and reads
// through a follower that hears of it later.
func TestReadShowsWhatAnotherServerHasAcknowledged(t *testing.T) {
	t.Parallel()
	leads, lags := lagging(t, 100*time.Millisecond)
	a, b := open(t, "zookeeper://"+leads.Addr()).store, open(t, "zookeeper://"+lags.Addr()).store
	check.Must(t, a.Prepare(t.Context()))
	b.mustRead(t, "job") // it is connected
	for i := range 3 {
		for kind, how := range map[string]*call{"that counts": {}, "for display": {display: true}} {
			row := version("job", fmt.Sprint(i, " ", kind))
			a.mustSwap(t, a.mustRead(t, "job"), row)
			got, err := b.Read(how.in(t.Context()), "job")
			check.Must(t, err)
			if string(got.Row.State) != string(row.State) {
				exclusion.Never(t, "after %q was written, a read %s showed %q", row.State, kind, got.Row.State)
			}
		}
		row, seen := version("job", fmt.Sprint(i, " while we waited")), &call{row: "job", probe: true}
		place := casnode.Place{Name: "job", Waiter: "1", Process: "1"}
		_, err := b.Put(t.Context(), place, i > 0)
		check.Must(t, err)
		a.mustSwap(t, a.mustRead(t, "job"), row)
		got, err := b.Put(seen.in(t.Context()), place, true)
		check.Must(t, err)
		if seen.queued && string(got.Row.State) != string(row.State) {
			t.Errorf("after %q was written, a waiter was shown %q", row.State, got.Row.State)
		}
	}
}

// TestOnlyTheUserOfTheZnodesMayUseThem tries other users, and none.
func TestOnlyTheUserOfTheZnodesMayUseThem(t *testing.T) {
	t.Parallel()
	at := server(t).Addr()
	for _, test := range []struct {
		user string
		may  bool
	}{{"locks:secret@", true}, {"locks:wrong@", false}, {"others:secret@", false}, {"", false}, {"locks:secret@", true}} {
		n := open(t, "zookeeper://"+test.user+at+"/private")
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		reply, err := n.Do(ctx, request(node.OpAcquire, "one", time.Minute))
		cancel()
		if test.may && (err != nil || reply.Status != node.Granted) || !test.may && (!errors.Is(err, ErrAuth) || !errors.Is(err, node.ErrUnsent)) {
			t.Errorf("%q: %v, %v", test.user, reply.Status, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error has the password: %v", err)
		}
	}
	// Timers have a session of their own, which must authenticate, too.
	n := open(t, "zookeeper://locks:secret@"+at+"/private")
	if done, err := n.store.StartTimer(t.Context(), "job", "timer1", 5*time.Second); !done || err != nil {
		t.Errorf("StartTimer: %v, %v", done, err)
	}
}

// TestTwoRootsInOneEnsembleAreOneServer lists an ensemble twice, under two roots.
func TestTwoRootsInOneEnsembleAreOneServer(t *testing.T) {
	t.Parallel()
	_, elsewhere := start(t, 1)
	together := func(nodes ...redlatch.Node) error {
		c, err := redlatch.New(nodes, &redlatch.Options{NodeTimeout: 10 * time.Second})
		if err == nil {
			_, err = c.TryLock(t.Context(), "job", nil) // New does not wait for long
			c.Close()
		}
		return err
	}
	err := together(open(t, fresh(t)), open(t, elsewhere+"/first"), open(t, strings.Replace(fresh(t), "//", "//locks:secret@", 1)))
	if err == nil || !strings.Contains(err.Error(), "duplicate server") {
		t.Errorf("two roots: %v", err)
	}
	if err := together(open(t, fresh(t)), open(t, elsewhere+"/third")); err != nil && !errors.Is(err, redlatch.ErrQuarantine) {
		t.Errorf("two ensembles: %v", err)
	}
}

func TestRootNeedsAParent(t *testing.T) {
	t.Parallel()
	address := "zookeeper://" + server(t).Addr()
	n := open(t, address+"/apps/locks")
	if _, err := n.Do(t.Context(), request(node.OpAcquire, "one", time.Minute)); !errors.Is(err, ErrNoParent) {
		t.Errorf("without a parent: %v", err)
	}
	conn, _, err := zk.Connect([]string{server(t).Addr()}, 5*time.Second, zk.WithLogger(silent{}))
	check.Must(t, err)
	defer conn.Close()
	_, err = conn.Create("/apps", nil, 0, zk.WorldACL(zk.PermAll))
	check.Must(t, err)
	want(t, n, request(node.OpAcquire, "one", time.Minute), node.Granted)
	from, err := From(conn, &Options{Name: "zookeeper://ours", Root: "/apps/locks"})
	check.Must(t, err)
	want(t, from, request(node.OpAcquire, "two", time.Minute), node.Held)
	if from.Timers() != 1 {
		t.Errorf("%d timers were left", from.Timers())
	}
	check.Must(t, from.Close())
	if _, _, err := conn.Exists("/apps"); err != nil {
		t.Errorf("the program's connection after Close: %v", err)
	}
	other := open(t, address+"/elsewhere")
	want(t, other, request(node.OpAcquire, "three", time.Minute), node.Granted)
}

// TestNoTimerIsLeftAboveTheLongestSession asks for more than the server grants. A timer
// that ends early would free a lock that is held.
func TestNoTimerIsLeftAboveTheLongestSession(t *testing.T) {
	t.Parallel()
	_, address := start(t, 1, "maxSessionTimeout=2000")
	n := open(t, address)
	want(t, n, request(node.OpAcquire, "one", 20*time.Second), node.Granted) // timers are of a row
	for d, may := range map[time.Duration]bool{time.Second: true, 2 * time.Second: true, 2001 * time.Millisecond: false, time.Minute: false, 10000 * time.Hour: false} {
		if done, err := n.store.StartTimer(t.Context(), "job", "timer"+strconv.Itoa(int(d/time.Millisecond)), d); done != may || err != nil {
			t.Errorf("a timer of %v: %v, %v", d, done, err)
		}
	}
}

func TestExamineReportsServersAndTimers(t *testing.T) {
	t.Parallel()
	servers, address := start(t, 3, "maxSessionTimeout=10000")
	// A server that is slow to answer is found, too.
	expect := func(address string, parts ...string) {
		t.Helper()
		n := open(t, address)
		poll.Within(t, patience, func() error {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			found, err := n.Examine(ctx, risk.Exam{Name: "probe", Window: 10 * time.Second})
			got := fmt.Sprint(err)
			for _, f := range found {
				got += fmt.Sprintln("\n", f.Severity, f.Check, f.Found)
			}
			if slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(got, part) }) {
				return fmt.Errorf("want %q: %s", parts, got)
			}
			return nil
		})
	}
	expect(address, "fine rights", "fine servers 3 servers answer", "advice timers sessions last 10s")
	alone := server(t).Addr()
	expect("zookeeper://"+alone, "fine rights", "is a server of its own", "fine timers up to 2m0s")
	_, others := leader(t, servers)
	others[0].Kill()
	expect(address, "warning servers "+others[0].Addr()+" does not answer")
	expect(address+"+"+alone, "danger servers the address has servers of several ensembles")
}
