//go:build unix

// Package wire_test runs a client that is written from docs/wire.md alone beside
// redlatch, on the same servers.
package wire_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/servertest"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/test/interop/beside"
	"github.com/redlatch/redlatch/test/interop/foreign"
	"github.com/redlatch/redlatch/test/interop/former"
)

const (
	minimal = "the minimal client"
	ours    = "redlatch"
)

func TestMain(m *testing.M) { former.Main(m) }

// python returns a process of the minimal client; dir is where its files are.
func python(t *testing.T, dir string, servers []*servertest.Server) *beside.Player {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Fatalf("this test needs python3, which make deps installs: %v", err)
	}
	return beside.Start(t, minimal, false, append([]string{"python3", filepath.Join(dir, "minimal.py")}, servertest.Addresses(servers)...)...)
}

// redlatch returns a process of redlatch. It declares the servers new.
func redlatch(t *testing.T, servers []*servertest.Server) *beside.Player {
	t.Helper()
	return beside.Start(t, ours, true, former.Worker(t, former.Version{}), "-nodes", strings.Join(servertest.Addresses(servers), ","),
		"-fresh", "-max-ttl", "4s")
}

// contest has three processes of each side contend.
func contest(t *testing.T, dir string, n int) *beside.Contest {
	t.Helper()
	servers := servertest.Redis(t, n)
	const name = "contended"
	c := &beside.Contest{Judge: beside.NewJudge(name, servers), Name: name, Sides: map[string][]beside.Contender{}}
	for range 3 {
		p := redlatch(t, servers)
		p.Cycle("first")
		c.Sides[ours] = append(c.Sides[ours], p)
		c.Sides[minimal] = append(c.Sides[minimal], python(t, dir, servers))
	}
	c.PlayFor(t)
	return c
}

// TestMinimalClientAndRedlatchExcludeEachOther has processes of both contend:
// never do two hold the lock, and tokens grow over both.
func TestMinimalClientAndRedlatchExcludeEachOther(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			contest(t, ".", n).Check(t)
		})
	}
}

// TestContestFindsMinimalClientsThatBreakARule shows that the test above can
// fail.
func TestContestFindsMinimalClientsThatBreakARule(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, old, new, want string }{
		"takes what is held": {"acquire.lua", "then return reply('held') end", "then end", "overlap"},
		"leaves the fence":   {"acquire.lua", "redis.call('SET', KEYS[2], token, 'PX', math.max(ARGV[4], redis.call('PTTL', KEYS[2])))", "", "the fences are"},
		"has another fence":  {"minimal.py", "redlatch:1:fence:", "redlatch:2:fence:", "the fences are"},
		"has another lock":   {"minimal.py", "return [self.key, fence]", "return ['2:' + self.key, fence]", "overlap|token order"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servertest.Need(t)
			dir := t.TempDir()
			check.Must(t, os.CopyFS(dir, os.DirFS(".")))
			file := filepath.Join(dir, c.file)
			text, err := os.ReadFile(file)
			check.Must(t, err)
			if n := strings.Count(string(text), c.old); n != 1 {
				t.Fatalf("%s has %d places that read %s", c.file, n, c.old)
			}
			check.Must(t, os.WriteFile(file, []byte(strings.Replace(string(text), c.old, c.new, 1)), 0o600))
			faults := contest(t, dir, 1).Judge.Faults()
			if !slices.ContainsFunc(faults, func(f string) bool { return regexp.MustCompile(c.want).MatchString(f) }) {
				t.Errorf("it is not found that %s; found is %q", c.want, faults)
			}
		})
	}
}

// TestMinimalClientKeepsToTheMarker has it ask servers without a marker, servers
// of another membership, and servers that forgot.
func TestMinimalClientKeepsToTheMarker(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 4)
	three := servers[:3]
	p := python(t, ".", three)
	refused := func(p *beside.Player, ms, why string) {
		t.Helper()
		var a foreign.Answer
		for end := time.Now().Add(beside.Patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if a = p.Order("acquire", "n", ms, "0"); a.OK() || strings.Contains(a.String(), why) {
				break // another answer is that of a server that was too slow
			}
		}
		if !strings.Contains(a.String(), why) {
			t.Errorf("it answers %q, want a refusal: %s", a, why)
		}
	}
	refused(p, "1000", "quarantine")
	q := redlatch(t, three)
	q.Cycle("n")
	if before, after := p.Cycle("n"), q.Cycle("n"); after <= before {
		exclusion.Never(t, "token %d after %d", after, before)
	}
	refused(python(t, ".", []*servertest.Server{servers[0], servers[1], servers[3]}), "1000", "config")
	refused(p, "5000", "config") // a time to live above the marker's
	// A minority may forget, a majority may not.
	servers[0].Kill()
	servers[0].Restart()
	p.Cycle("n")
	servers[1].Kill()
	servers[1].Restart()
	refused(p, "1000", "quarantine")
}

// TestMinimalClientKeepsTheHoldersToken has it get no answer while redlatch holds
// the lock. It releases what it may have: the fence rises, and the holder's token
// stays known.
func TestMinimalClientKeepsTheHoldersToken(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 1)
	proxy := servertest.NewProxy(t, servers[0])
	p, q := beside.Start(t, minimal, false, "python3", "minimal.py", proxy.URL()), redlatch(t, servers)
	token := q.Get("n", "")
	own, fence := fmt.Sprintf("%020d", token), ""
	read := func() { fence = servers[0].Do("GET", "redlatch:1:fence:{n}") }
	if a := p.Order("acquire", "n", "1000", "0"); a.Word != "held" {
		t.Fatalf("it answers %q", a)
	}
	if read(); fence != own {
		t.Errorf("a refusal changed the fence: %q", fence)
	}
	proxy.SwallowReplies(true)
	if a := p.Order("acquire", "n", "1000", "0"); a.Word != "error" {
		t.Fatalf("without an answer it answers %q", a)
	}
	if read(); len(fence) != 41 || fence[:20] <= own || fence[21:] != own {
		t.Errorf("the fence is %q; want one above the holder's token, and that one: %s", fence, own)
	}
	q.Must("release")
	q.Cycle("n")
}

// TestLateMinimalClientTakesNothing freezes it until its lock has expired and
// redlatch has it.
func TestLateMinimalClientTakesNothing(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 3)
	q, p := redlatch(t, servers), python(t, ".", servers)
	q.Cycle("n")
	before := p.Get("n", "")
	p.Freeze()
	if token := q.Get("n", ""); token <= before {
		t.Fatalf("redlatch has token %d after %d", token, before)
	}
	p.Thaw()
	for _, order := range []string{"valid", "extend", "release"} {
		if a := p.Order(order, fmt.Sprint(beside.TTL.Milliseconds())); a.Word != "lost" {
			t.Errorf("%s: it answers %q", order, a)
		}
	}
	q.Must("valid")
	q.Must("release")
}
