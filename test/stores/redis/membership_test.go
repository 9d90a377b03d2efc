//go:build unix

package redis_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
)

// threeMarked starts three servers that are marked for all of them.
func threeMarked(t testing.TB) (servers []*servertest.Server, three *redlatch.Client) {
	t.Helper()
	servers = servertest.Redis(t, 3)
	three = newClient(t, open(t, servertest.Addresses(servers)...), quick)
	must(t, cycle(three))
	return servers, three
}

func wantText(t testing.TB, err error, parts ...string) {
	t.Helper()
	for _, want := range parts {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

func TestMembershipOfOneBesideOneOfThreeIsRefused(t *testing.T) {
	t.Parallel()
	servers, three := threeMarked(t)
	one := laterClient(t, quick, servers[0].URL()) // with the guard off, as for a single server
	l, err := one.TryLock(context.Background(), "pay", nil)
	if err == nil {
		l3, err := three.TryLock(context.Background(), "pay", nil)
		t.Fatalf("a list of one holds it, token %d, and to the list of three is said %v, %v", l.Token(), l3, err)
	}
	wantErr(t, err, redlatch.ErrConfig)
	if errors.Is(err, redlatch.ErrChanging) {
		t.Errorf("%v says that it passes", err)
	}
	wantText(t, err, "missing ", servers[1].URL(), servers[2].URL(), "use that membership", "redlatch init --nodes "+servers[0].URL()+" --former "+strings.Join(slices.Sorted(slices.Values(servertest.Addresses(servers))), ","))
}

func TestExtensionByAnotherMembershipIsRefusedWithTheGuardOff(t *testing.T) {
	t.Parallel()
	servers, three := threeMarked(t)
	three.Close() // a late request of it would mark the server again
	marker := servers[0].Do("GET", "redlatch:1:marker")
	servers[0].Do("DEL", "redlatch:1:marker")
	one := laterClient(t, quick, servers[0].URL())
	l, err := one.Lock(context.Background(), "pay", &redlatch.LockOptions{NoKeepAlive: true})
	if err != nil {
		t.Fatalf("without a marker: %v", err)
	}
	if m := servers[0].Do("GET", "redlatch:1:marker"); m != "" {
		t.Errorf("with the guard off the server was marked %q", m)
	}
	servers[0].Do("SET", "redlatch:1:marker", marker)
	err = l.Extend(context.Background())
	wantErr(t, err, redlatch.ErrLost)
	wantErr(t, err, redlatch.ErrConfig)
	wantText(t, err, servers[1].URL())
}

func TestTTLAboveTheMarkersIsRefusedWithTheGuardOff(t *testing.T) {
	t.Parallel()
	servers, _ := threeMarked(t)
	c := laterClient(t, redlatch.Options{Guard: redlatch.GuardOff, NodeTimeout: time.Second}, servertest.Addresses(servers)...)
	_, err := c.TryLock(context.Background(), "job", &redlatch.LockOptions{TTL: 3 * time.Second})
	wantErr(t, err, redlatch.ErrConfig)
	wantText(t, err, "TTL is 3s", "2s", servers[0].URL())
	l, err := c.TryLock(context.Background(), "job", &redlatch.LockOptions{TTL: 2 * time.Second})
	must(t, err)
	l.Release(context.Background())
	// With the guard off a quarantine is ignored.
	for _, s := range servers {
		m := strings.Split(s.Do("GET", "redlatch:1:marker"), " ")
		m[8] = "9000000000000000"
		s.Do("SET", "redlatch:1:marker", strings.Join(m, " "))
	}
	if l, err = c.TryLock(context.Background(), "job", &redlatch.LockOptions{TTL: 2 * time.Second}); err != nil {
		t.Error(err)
	} else {
		l.Release(context.Background())
	}
}

func TestAnyMembershipLocksBesideAnotherMembership(t *testing.T) {
	t.Parallel()
	servers, three := threeMarked(t)
	opts := quick
	opts.AnyMembership = true
	one := laterClient(t, opts, servers[0].URL())
	l, err := one.Lock(context.Background(), "of another application", nil)
	must(t, err)
	must(t, l.Extend(context.Background()))
	l.Release(context.Background())
	must(t, cycle(three))
	nodes := open(t, servertest.Addresses(servers)...)
	_, err = redlatch.New(nodes, &opts) // with the guard on
	wantErr(t, err, redlatch.ErrConfig)
	wantText(t, err, "AnyMembership", "GuardOff")
	for _, n := range nodes {
		n.Close()
	}
}

func TestExaminationFindsAnotherMembershipWithTheGuardOff(t *testing.T) {
	t.Parallel()
	servers, _ := threeMarked(t)
	nodes := open(t, servers[0].URL())
	defer nodes[0].Close()
	find := func(opts redlatch.Options, nodes []redlatch.Node) *node.Finding {
		up, err := admin.Examine(context.Background(), nodes, &opts, &admin.ExamineOptions{Samples: 2})
		must(t, err)
		for _, f := range up.Findings {
			if f.Check == "marker" {
				return &f
			}
		}
		return nil
	}
	f := find(redlatch.Options{}, nodes)
	if f == nil || f.Severity != node.Danger || !strings.Contains(f.Found, servers[1].URL()) || !strings.Contains(f.Found, "use that membership; or, to change it, run redlatch init") {
		t.Errorf("found is %+v", f)
	}
	if f := find(redlatch.Options{AnyMembership: true}, nodes); f == nil || f.Severity != node.Advice || !strings.Contains(f.Found, "AnyMembership") {
		t.Errorf("with AnyMembership found is %+v", f)
	}
	// The same membership with other parameters, and a server without a marker,
	// are no danger.
	all := open(t, servertest.Addresses(servers)...)
	if f := find(redlatch.Options{Guard: redlatch.GuardOff}, all); f != nil {
		t.Errorf("of the same list found is %+v", f)
	}
	for _, n := range all {
		n.Close()
	}
	servers[0].Do("DEL", "redlatch:1:marker")
	if f := find(redlatch.Options{}, nodes); f != nil {
		t.Errorf("without a marker found is %+v", f)
	}
}

// TestRetiredServerCanServeAnotherMembership removes c from its membership, and uses
// it alone.
func TestRetiredServerCanServeAnotherMembership(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	servers := servertest.Redis(t, 4)
	a, b, c, d := servers[0].URL(), servers[1].URL(), servers[2].URL(), servers[3].URL()
	must(t, cycle(newClient(t, open(t, a, b, c), quick)))
	alone := laterClient(t, quick, c)
	retire := func() error {
		_, err := admin.New(alone).Init(ctx, &admin.InitOptions{Former: open(t, c)})
		return err
	}
	before := servers[2].Do("GET", "redlatch:1:marker")
	err := retire()
	wantErr(t, err, redlatch.ErrConfig)
	wantText(t, err, "former membership differs from the one on "+c, "nothing was changed")
	if after := servers[2].Do("GET", "redlatch:1:marker"); after != before {
		t.Errorf("the marker of a server in service is now %q", after)
	}
	changed := laterClient(t, quick, a, b, d)
	if _, err := admin.New(changed).Init(ctx, &admin.InitOptions{Former: open(t, a, b, c)}); err != nil {
		t.Fatal(err)
	}
	_, err = alone.TryLock(ctx, "job", nil)
	wantErr(t, err, redlatch.ErrConfig)
	wantText(t, err, "redlatch init --former "+c)
	must(t, retire())
	must(t, cycle(alone))
	if err := retire(); err != nil { // a second time changes nothing
		t.Error(err)
	}
	eventually(t, patience, func() error { return cycle(changed) })
}
