//go:build linux

package redlatchprom_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/adapters/prom"
	"github.com/redlatch/redlatch/internal/test/clockshim"
	"github.com/redlatch/redlatch/internal/test/fresh"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

func TestMain(m *testing.M) { os.Exit(servertest.Main(m)) }

// read returns the text of a file.
func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	return string(text)
}

// shorter makes of our rules those that a test can wait for: times and bounds
// are shorter, the expressions are the same.
var shorter = [][2]string{
	{"[1m]", "[10s]"}, {"for: 30s", "for: 1s"}, {"for: 2m", "for: 1s"}, {"> 60", "> 10"}, {"> 0.8", "> 0.1"},
}

func shortened(t *testing.T) string {
	t.Helper()
	rules := read(t, "alerts.yml")
	for _, s := range shorter {
		if !strings.Contains(rules, s[0]) {
			t.Fatalf("alerts.yml has no %q", s[0])
		}
		rules = strings.ReplaceAll(rules, s[0], s[1])
	}
	return rules
}

// alertNames returns the names of our alerts.
func alertNames(t *testing.T) (names []string) {
	t.Helper()
	for _, m := range regexp.MustCompile(`- alert: (\w+)\n`).FindAllStringSubmatch(read(t, "alerts.yml"), -1) {
		names = append(names, m[1])
	}
	if len(names) < 5 {
		t.Fatalf("alerts.yml has the alerts %q", names)
	}
	return names
}

func TestRulesAreValidAndPassTheirUnitTests(t *testing.T) {
	t.Parallel()
	promtool(t, nil, "check", "rules", "alerts.yml")
	promtool(t, nil, "test", "rules", "testdata/alerts_test.yml")
	unit, doc := read(t, "testdata/alerts_test.yml"), read(t, "../../docs/metrics.md")
	for _, name := range alertNames(t) {
		if !strings.Contains(unit, name) {
			t.Errorf("there is no unit test of %s", name)
		}
		if !strings.Contains(doc, "\n### "+name+"\n") {
			t.Errorf("docs/metrics.md has no heading for the alert %s", name)
		}
	}
}

// program uses locks on three servers, with all outcomes that locks have without
// faults, and serves its metrics.
type program struct {
	locks    *redlatch.Client
	servers  []*servertest.Server
	clock    *clockshim.Clock // of the third server
	instance string           // the address of its metrics
}

func startProgram(t *testing.T) *program {
	t.Helper()
	third, clock := servertest.StartWithSettableClock(t, 0)
	p := &program{servers: append(servertest.Redis(t, 2), third), clock: clock}
	metrics, registry := newCollector(t, redlatchprom.Options{})
	locks, err := redlatch.Open(strings.Join(servertest.Addresses(p.servers), ","),
		&redlatch.Options{Observer: metrics, TTL: 8 * time.Second, NodeTimeout: 5 * time.Second})
	must(t, err)
	t.Cleanup(func() { locks.Close() })
	must(t, fresh.Declare(t.Context(), locks))
	metrics.Watch(locks)
	page := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(page.Close)
	p.locks, p.instance = locks, strings.TrimPrefix(page.URL, "http://")
	p.lock(t, "busy", 0)
	for worker := range 2 {
		go p.work(t.Context(), worker == 0)
	}
	return p
}

// lock has the program hold a lock, or wait for it.
func (p *program) lock(t *testing.T, name string, maxHold time.Duration) {
	ctx := t.Context()
	go p.locks.Lock(ctx, name, &redlatch.LockOptions{MaxHold: maxHold})
}

// work contends for locks, and tries one that is held.
func (p *program) work(ctx context.Context, tries bool) {
	for i := 0; ctx.Err() == nil; i++ {
		lease, err := p.locks.Lock(ctx, fmt.Sprintf("orders/%d", i/5), &redlatch.LockOptions{Wait: 2 * time.Second})
		time.Sleep(10 * time.Millisecond)
		if err == nil {
			lease.Release(ctx)
		}
		if tries {
			p.locks.TryLock(ctx, "busy", nil)
		}
	}
}

// TestPrometheusOnRealServers has a real Prometheus server scrape programs that
// use locks on real servers. Every query of the dashboard has data, and every
// alert fires after its fault, and not before.
func TestPrometheusOnRealServers(t *testing.T) {
	t.Parallel()
	s := startPrometheus(t, shortened(t))
	var all []string
	t.Run("group", func(t *testing.T) {
		for name, scene := range map[string]struct {
			fault func(*testing.T, *program)
			want  []string
		}{
			"no fault": {fault: func(t *testing.T, p *program) { dashboardHasData(t, s, p.instance) }},
			"servers fail": {func(t *testing.T, p *program) {
				p.servers[0].Kill()
				s.wantFired(t, p.instance, []string{"RedlatchReducedRedundancy"})
				p.servers[1].Kill() // without a quorum leases cannot be extended either
			}, []string{"RedlatchLockLost", "RedlatchNoQuorum", "RedlatchReducedRedundancy"}},
			"a holder hangs": {func(t *testing.T, p *program) {
				p.lock(t, "leader/x", time.Minute) // no alert: a leader holds its lock for as long as it can
				p.lock(t, "stuck", time.Minute)
			}, []string{"RedlatchHoldNearMaxHold"}},
			"a caller waits": {func(t *testing.T, p *program) {
				for range 2 {
					p.lock(t, "leader/x", time.Hour) // no alert: candidates wait
					p.lock(t, "stuck", time.Hour)
				}
			}, []string{"RedlatchLongWait"}},
			"a clock is wrong": {func(_ *testing.T, p *program) { p.clock.Set(30*time.Second, 0) }, []string{"RedlatchNodeClockWrong"}},
		} {
			all = append(all, scene.want...)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p := startProgram(t)
				s.scrape(t, p.instance)
				s.wantFired(t, p.instance, nil)
				scene.fault(t, p)
				s.wantFired(t, p.instance, scene.want)
			})
		}
	})
	for _, name := range alertNames(t) {
		if !slices.Contains(all, name) {
			t.Errorf("no fault here is for %s", name)
		}
	}
	var rules struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	must(t, s.get("/api/v1/rules", nil, &rules))
	for _, r := range rules.Groups[0].Rules {
		if r.Health != "ok" {
			t.Errorf("rule %s: %s", r.Name, r.LastError)
		}
	}
}
