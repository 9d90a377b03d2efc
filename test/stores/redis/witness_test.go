package redis_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// TestInitDoesNotBelieveOneWitness changes the membership from a, b, c to a, b, d
// while c is down. Then c is back, b has lost its data, and a cannot be reached:
// an init for the old membership must not mark b on the word of c.
func TestInitDoesNotBelieveOneWitness(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 4)
	proxies, _ := servertest.NewProxies(t, servers[:3])
	a, b, c, d := proxies[0].URL(), proxies[1].URL(), proxies[2].URL(), servers[3].URL()
	old := newClient(t, open(t, a, b, c), quick)
	must(t, cycle(old))
	nobody := "127.0.0.1:" + servertest.FreePort(t)
	away := func(p *servertest.Proxy) { p.LeadTo(nobody); p.Reset() }
	away(proxies[2])
	changed := laterClient(t, quick, a, b, d)
	_, err := admin.New(changed).Init(context.Background(), &admin.InitOptions{Former: open(t, a, b, c)})
	proxies[2].LeadTo(servers[2].Addr())
	must(t, err)
	eventually(t, patience, func() error { return cycle(changed) })
	servers[1].Do("FLUSHALL")
	away(proxies[0])
	again := laterClient(t, quick, a, b, c)
	_, err = admin.New(again).Init(context.Background(), nil)
	if m := servers[1].Do("GET", "redlatch:1:marker"); err == nil || m != "" && !strings.Contains(m, d) {
		exclusion.Never(t, "on the word of one node, b was marked %q: %v", m, err)
	}
	if !strings.Contains(err.Error(), "1 of 3 nodes confirm this membership, where 2 are needed") || !strings.Contains(err.Error(), a) {
		t.Errorf("%v does not say what is missing", err)
	}
}

// TestSameChangeAgainMarksOnlyWhatIsMissing runs a membership change twice. The
// second run begins no quarantine on nodes that the first one marked.
func TestSameChangeAgainMarksOnlyWhatIsMissing(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 4)
	a := servertest.Addresses(servers)
	must(t, cycle(newClient(t, open(t, a[:3]...), quick)))
	changed := laterClient(t, quick, a[0], a[1], a[3])
	change := func() []admin.NodeState {
		t.Helper()
		states, err := admin.New(changed).Init(context.Background(), &admin.InitOptions{Former: open(t, a[:3]...)})
		must(t, err)
		return states
	}
	for _, s := range change() {
		if s.Trusted || s.Marked.Generation != 2 {
			t.Errorf("%+v after the first change", s)
		}
	}
	eventually(t, patience, func() error { return cycle(changed) })
	servers[3].Do("FLUSHALL")
	for _, s := range change() {
		if missing := s.Node == a[3]; s.Trusted == missing || s.Marked.Generation != 2 {
			t.Errorf("%s is trusted %v, %+v, after the same change again", s.Node, s.Trusted, s.Marked)
		}
	}
}

// TestChangeOfMembershipIsNotHeldUpByAFrozenNode has a node of the former
// membership not answer, and not refuse either.
func TestChangeOfMembershipIsNotHeldUpByAFrozenNode(t *testing.T) {
	t.Parallel()
	eachDriver(t, func(t *testing.T, nodes func(...string) []redlatch.Node) {
		t.Parallel()
		servers := servertest.Redis(t, 4)
		a := servertest.Addresses(servers)
		must(t, cycle(newClient(t, nodes(a[:3]...), quick)))
		changed, err := redlatch.New(nodes(a[0], a[1], a[3]), &quick)
		must(t, err)
		t.Cleanup(func() { changed.Close() })
		servers[2].Freeze()
		defer servers[2].Thaw()
		start := time.Now()
		_, err = admin.New(changed).Init(context.Background(), &admin.InitOptions{Former: nodes(a[:3]...)})
		if took := time.Since(start); err != nil || over(t, took, 20*time.Second, start) {
			t.Fatalf("after %v: %v", took, err)
		}
		eventually(t, patience, func() error { return cycle(changed) })
	})
}
