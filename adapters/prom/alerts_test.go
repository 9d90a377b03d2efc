//go:build linux

package redlatchprom_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// shorter makes of our rules those that a test can wait for: times and bounds
// are shorter, the expressions are the same.
var shorter = []struct{ old, new string }{
	{"[5m]", "[20s]"},
	{"[1m]", "[10s]"},
	{"for: 30s", "for: 1s"},
	{"for: 2m", "for: 1s"},
	{"> 60", "> 10"},
	{"> 0.8", "> 0.1"},
}

func shortened(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("alerts.yml")
	must(t, err)
	rules := string(text)
	for _, s := range shorter {
		if !strings.Contains(rules, s.old) {
			t.Fatalf("alerts.yml has no %q", s.old)
		}
		rules = strings.ReplaceAll(rules, s.old, s.new)
	}
	return rules
}

func TestRulesAreValidAndPassTheirUnitTests(t *testing.T) {
	t.Parallel()
	promtool(t, nil, "check", "rules", "alerts.yml")
	promtool(t, nil, "test", "rules", "testdata/alerts_test.yml")
	unit, err := os.ReadFile("testdata/alerts_test.yml")
	must(t, err)
	for _, name := range alertNames(t) {
		if !strings.Contains(string(unit), name) {
			t.Errorf("there is no unit test of %s", name)
		}
	}
}

// alertNames returns the names of our alerts.
func alertNames(t *testing.T) (names []string) {
	t.Helper()
	text, err := os.ReadFile("alerts.yml")
	must(t, err)
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "- alert: "); ok {
			names = append(names, name)
		}
	}
	if len(names) < 5 {
		t.Fatalf("alerts.yml has the alerts %q", names)
	}
	return names
}

// TestPrometheusOnRealServers has a real Prometheus server scrape programs that
// use locks on real servers. Every query of the dashboard has data, and every
// alert fires after its fault, and not before.
func TestPrometheusOnRealServers(t *testing.T) {
	t.Parallel()
	p := startPrometheus(t, shortened(t))
	firedInAll := make(chan []string, 4)
	t.Run("group", func(t *testing.T) {
		t.Run("no fault", func(t *testing.T) {
			t.Parallel()
			dashboardHasData(t, p)
		})
		t.Run("servers fail", func(t *testing.T) {
			t.Parallel()
			firedInAll <- serversFail(t, p)
		})
		t.Run("a holder hangs", func(t *testing.T) {
			t.Parallel()
			firedInAll <- holderHangs(t, p)
		})
		t.Run("a caller waits", func(t *testing.T) {
			t.Parallel()
			firedInAll <- callerWaits(t, p)
		})
		t.Run("a clock is wrong", func(t *testing.T) {
			t.Parallel()
			firedInAll <- clockIsWrong(t, p)
		})
	})
	for _, r := range p.rules(t) {
		if r.Health != "ok" {
			t.Errorf("rule %s: %s", r.Name, r.LastError)
		}
	}
	close(firedInAll)
	var all []string
	for names := range firedInAll {
		all = append(all, names...)
	}
	for _, name := range alertNames(t) {
		if !slices.Contains(all, name) {
			t.Errorf("%s never fired: %q", name, all)
		}
	}
}

// begin starts a program on servers, and checks that no alert fires for it
// before its fault.
func begin(t *testing.T, p *server, servers []*servertest.Server) *running {
	t.Helper()
	prog := start(t, servers)
	p.scrape(t, prog.instance)
	if names := p.fired(t, prog.instance); len(names) > 0 {
		t.Fatalf("before the fault %q fired", names)
	}
	return prog
}

// awaitAlerts waits until exactly these alerts have fired, and returns them.
func awaitAlerts(t *testing.T, p *server, instance string, want ...string) []string {
	t.Helper()
	slices.Sort(want)
	poll.Within(t, poll.Patience, func() error {
		names := p.fired(t, instance)
		for _, name := range names {
			if !slices.Contains(want, name) {
				t.Fatalf("%s fired, and only %q should", name, want)
			}
		}
		if len(names) < len(want) {
			return fmt.Errorf("%q fired, want %q", names, want)
		}
		return nil
	})
	return want
}

func serversFail(t *testing.T, p *server) []string {
	servers := servertest.Redis(t, 3)
	prog := begin(t, p, servers)
	servers[0].Kill()
	awaitAlerts(t, p, prog.instance, "RedlatchReducedRedundancy")
	servers[1].Kill()
	// Without a quorum leases cannot be extended either.
	return awaitAlerts(t, p, prog.instance, "RedlatchReducedRedundancy", "RedlatchNoQuorum", "RedlatchLockLost")
}

func holderHangs(t *testing.T, p *server) []string {
	prog := begin(t, p, servertest.Redis(t, 3))
	prog.lock("leader/x", time.Minute) // no alert: a leader holds its lock for as long as it can
	prog.lock("stuck", time.Minute)
	return awaitAlerts(t, p, prog.instance, "RedlatchHoldNearMaxHold")
}

func callerWaits(t *testing.T, p *server) []string {
	prog := begin(t, p, servertest.Redis(t, 3))
	for range 2 {
		prog.lock("leader/x", time.Hour) // no alert: candidates wait
		prog.lock("stuck", time.Hour)
	}
	return awaitAlerts(t, p, prog.instance, "RedlatchLongWait")
}

func clockIsWrong(t *testing.T, p *server) []string {
	servers := servertest.Redis(t, 2)
	third, clock := servertest.StartWithSettableClock(t, 0)
	prog := begin(t, p, append(servers, third))
	clock.Set(30*time.Second, 0)
	return awaitAlerts(t, p, prog.instance, "RedlatchNodeClockWrong")
}
