//go:build unix

package redis_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/stall"
	"github.com/redlatch/redlatch/node"
)

// writing is a node that calls before ahead of each request that marks it.
type writing struct {
	node.Guarded
	before func(*node.Request)
}

func (w writing) Do(ctx context.Context, req node.Request) (node.Reply, error) {
	if req.Op == node.OpMark && req.Mark != node.MarkRead {
		w.before(&req)
	}
	return w.Guarded.Do(ctx, req)
}

// halfWay is a membership change from {a, b, c} to {a, b, d} whose operator has
// barred a, and was then cut off from b and c. Clients of the new membership do
// not reach b either.
type halfWay struct {
	servers  []*servertest.Server // a, b, c, d
	proxies  []*servertest.Proxy  // to b and c, for the operator and the new membership
	old, new *redlatch.Client
	err      error // the error that the operator received
	states   []admin.NodeState
}

func listed(name string) redlatch.Options {
	opts := quick
	opts.Membership = name
	return opts
}

// stopHalfWay makes one. mark may change what the operator writes to a.
func stopHalfWay(t testing.TB, mark func(*node.Request)) *halfWay {
	t.Helper()
	servers := servertest.Redis(t, 4)
	addresses := servertest.Addresses(servers)
	h := &halfWay{servers: servers}
	h.old = newClient(t, open(t, addresses[:3]...), listed("abc"))
	must(t, cycle(h.old))
	h.proxies, _ = servertest.NewProxies(t, servers[1:3])
	h.new = laterClient(t, listed("abd"), addresses[0], h.proxies[0].URL(), addresses[3])
	former := h.former(t)
	former[0] = writing{former[0].(node.Guarded), mark}
	for i, p := range h.proxies {
		former[1+i] = writing{former[1+i].(node.Guarded), func(*node.Request) { p.Partition(true) }}
	}
	before := h.marker(0)
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
	defer cancel()
	h.states, h.err = admin.New(h.new).Init(ctx, &admin.InitOptions{Former: former})
	wantErr(t, h.err, redlatch.ErrNoQuorum)
	if h.marker(0) == before {
		t.Fatal("the change of membership did not reach the first server: this test shows nothing")
	}
	return h
}

func (h *halfWay) marker(i int) string { return h.servers[i].Do("GET", "redlatch:1:marker") }

func (h *halfWay) former(t testing.TB) []redlatch.Node {
	return open(t, h.servers[0].URL(), h.proxies[0].URL(), h.proxies[1].URL())
}

// connect ends the partition. The next operator is another process: it has none
// of the connections that were cut off.
func (h *halfWay) connect(t testing.TB) {
	for _, p := range h.proxies {
		p.Partition(false)
		p.Cut()
	}
	h.new = laterClient(t, listed("abd"), h.servers[0].URL(), h.proxies[0].URL(), h.servers[3].URL())
}

// second has a client of the new membership ask for a lock that a client of the
// old one holds. It returns the second holder.
func (h *halfWay) second(t testing.TB, within time.Duration) *redlatch.Lease {
	t.Helper()
	l, err := h.old.Lock(context.Background(), "job", &redlatch.LockOptions{Wait: 10 * time.Second})
	if err != nil {
		t.Fatalf("the old membership is still in service, and yet: %v", err)
	}
	defer l.Release(context.Background())
	begin := time.Now()
	for end := begin.Add(within); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		l2, err := h.new.TryLock(context.Background(), "job", nil)
		if l.Err() != nil {
			stall.Busy(t, starved, begin) // it is for two seconds
			t.Fatalf("the lease of the old membership: %v", l.Err())
		}
		if err == nil {
			return l2
		}
	}
	return nil
}

// TestMembershipChangeThatStopsHalfWayLetsNobodyIn: the old membership stays in
// service until the change is completed, even if the server that is barred
// already restarts or loses its data.
func TestMembershipChangeThatStopsHalfWayLetsNobodyIn(t *testing.T) {
	for name, accident := range map[string]func(s *servertest.Server){
		"and nothing else": func(*servertest.Server) {},
		"and the barred server restarts with its data": func(s *servertest.Server) {
			s.Do("SAVE")
			s.Kill()
			s.Restart()
		},
		"and the barred server forgets everything": func(s *servertest.Server) { s.Do("FLUSHALL") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			timed(t, func(t testing.TB) { letsNobodyIn(t, accident) }) // leases of two seconds
		})
	}
}

func letsNobodyIn(t testing.TB, accident func(s *servertest.Server)) {
	h := stopHalfWay(t, func(*node.Request) {})
	accident(h.servers[0])
	if l2 := h.second(t, 4*time.Second); l2 != nil { // longer than a quarantine
		exclusion.Never(t, "two holders: the new membership granted token %d", l2.Token())
	}
	if m := h.marker(3); m != "" {
		t.Errorf("the new server is marked %q, and the old membership is in service", m)
	}

	// A second run finishes it.
	h.connect(t)
	l, err := h.old.Lock(context.Background(), "job", &redlatch.LockOptions{Wait: 10 * time.Second})
	must(t, err)
	if states, err := admin.New(h.new).Init(context.Background(), &admin.InitOptions{Former: h.former(t)}); err != nil {
		t.Fatal(err, states)
	}
	wantHandOver(t, h.old, l, h.new)
}

// TestNodeThatIsMarkedForTheNewMembershipTooEarlyIsNoQuorum has the first step of the
// same change mark the node for the new membership, instead of barring it. This
// node alone does not bring the new membership into service.
func TestNodeThatIsMarkedForTheNewMembershipTooEarlyIsNoQuorum(t *testing.T) {
	t.Parallel()
	h := stopHalfWay(t, func(req *node.Request) { req.Mark = node.MarkReplace })
	if l2 := h.second(t, 4*time.Second); l2 != nil {
		exclusion.Never(t, "two holders: the new membership granted token %d", l2.Token())
	}
}

// TestNodesThatAreMarkedForTheNewMembershipTooEarlyLetASecondHolderIn is why nodes
// are barred: if a membership becomes smaller, a quorum of the new one can be
// marked while the rest are a quorum of the old one.
func TestNodesThatAreMarkedForTheNewMembershipTooEarlyLetASecondHolderIn(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 5)
	addresses := servertest.Addresses(servers)
	h := &halfWay{servers: servers, old: newClient(t, open(t, addresses...), listed("abcde")), new: laterClient(t, listed("abc"), addresses[:3]...)}
	must(t, cycle(h.old))
	const abc = "abc (nodes: 3)"
	id := sha256.Sum256([]byte(abc))
	for _, n := range open(t, addresses[:2]...) {
		_, err := n.Do(context.Background(), node.Request{Op: node.OpMark, Mark: node.MarkReplace, Guard: &node.Guard{
			Membership: hex.EncodeToString(id[:8]), Nodes: abc, MaxTTL: quick.MaxTTL, Window: time.Second, Quarantine: 3133 * time.Millisecond}})
		must(t, err)
		n.Close()
	}
	if h.second(t, 20*time.Second) == nil {
		t.Error("there is no second holder, so that the tests of barred nodes show nothing")
	}
}

func TestMembershipChangeThatStoppedHalfWaySaysWhatToDo(t *testing.T) {
	t.Parallel()
	h := stopHalfWay(t, func(*node.Request) {})
	for _, want := range []string{"2 nodes of the former membership do not answer", "until the change is finished: redis://" + h.servers[0].Addr() + ";", "run the same change again"} {
		if !strings.Contains(h.err.Error(), want) {
			t.Errorf("%v does not say %q", h.err, want)
		}
	}
	if s := h.states[0]; s.Reason != node.ReasonBarred || s.Trusted || s.Left != 0 {
		t.Errorf("the barred node is shown as %+v", s)
	}
	_, err := h.new.TryLock(context.Background(), "job", nil)
	wantErr(t, err, redlatch.ErrConfig)
	wantErr(t, err, redlatch.ErrChanging)
	wantText(t, err, h.servers[0].Addr()+" is barred", `the membership to "abd (nodes: 3)" is not finished`, "run the same change again")
	for _, opts := range []admin.InitOptions{{}, {AssumeFresh: true}} { // which do not unbar it
		before := h.marker(0)
		if _, err := admin.New(h.old).Init(context.Background(), &opts); !errors.Is(err, redlatch.ErrConfig) || h.marker(0) != before {
			t.Errorf("%+v: %v, marked %q", opts, err, h.marker(0))
		}
	}
}

func TestMembershipChangeThatStoppedHalfWayCanBeTakenBack(t *testing.T) {
	t.Parallel()
	timed(t, isTakenBack) // the operator is cut off within seconds
}

func isTakenBack(t testing.TB) {
	h := stopHalfWay(t, func(*node.Request) {})
	h.connect(t)
	l, err := h.old.Lock(context.Background(), "job", &redlatch.LockOptions{NoKeepAlive: true})
	must(t, err)
	target := open(t, h.servers[0].URL(), h.proxies[0].URL(), h.servers[3].URL())
	if states, err := admin.New(h.old).Init(context.Background(), &admin.InitOptions{Former: target}); err != nil {
		t.Fatal(err, states)
	}
	_, err = h.new.TryLock(context.Background(), "job", nil)
	wantErr(t, err, redlatch.ErrConfig)
	eventually(t, patience, func() error {
		l2, err := h.old.TryLock(context.Background(), "job", nil)
		if err == nil && l.Err() == nil {
			exclusion.Never(t, "two holders: token %d beside %d", l2.Token(), l.Token())
		}
		return err
	})
}

// TestMembershipChangeThatStopsAfterTheOldOneIsBarredCanBeFinished cuts the
// operator off when the whole old membership is barred and not every node is
// marked for the new one.
func TestMembershipChangeThatStopsAfterTheOldOneIsBarredCanBeFinished(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 4)
	addresses := servertest.Addresses(servers)
	old := newClient(t, open(t, addresses[:3]...), listed("abc"))
	l, err := old.Lock(context.Background(), "job", nil)
	must(t, err)
	proxies, urls := servertest.NewProxies(t, []*servertest.Server{servers[1], servers[3]})
	members := open(t, addresses[0], urls[0], urls[1])
	for i, p := range proxies {
		members[1+i] = writing{members[1+i].(node.Guarded), func(*node.Request) { p.Partition(true) }}
	}
	change := listed("abd")
	operator, err := redlatch.New(members, &change)
	must(t, err)
	t.Cleanup(func() { operator.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
	defer cancel()
	_, err = admin.New(operator).Init(ctx, &admin.InitOptions{Former: open(t, addresses[:3]...)})
	wantErr(t, err, redlatch.ErrNoQuorum)
	wantText(t, err, "run the same change again")
	changed := laterClient(t, listed("abd"), addresses[0], addresses[1], addresses[3])
	eventually(t, patience, func() error {
		_, err := admin.New(changed).Init(context.Background(), &admin.InitOptions{Former: open(t, addresses[:3]...)})
		return err
	})
	wantHandOver(t, old, l, changed)
}

// wantHandOver fails unless the lease of one membership is over before the
// other grants, the other does grant in the end, and the first grants nothing
// more.
func wantHandOver(t testing.TB, from *redlatch.Client, l *redlatch.Lease, to *redlatch.Client) {
	t.Helper()
	eventually(t, patience, func() error {
		l2, err := to.TryLock(context.Background(), l.Name(), nil)
		if err != nil {
			return err
		}
		defer l2.Release(context.Background())
		if l.Err() == nil {
			exclusion.Never(t, "two holders: token %d beside %d", l2.Token(), l.Token())
		}
		if l2.Token() <= l.Token() {
			exclusion.Never(t, "token %d came after %d", l2.Token(), l.Token())
		}
		return nil
	})
	wantErr(t, context.Cause(l.Context()), redlatch.ErrLost)
	_, err := from.TryLock(context.Background(), "other", nil)
	wantErr(t, err, redlatch.ErrConfig)
}
