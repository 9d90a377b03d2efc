package explore

import (
	"cmp"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/race"
	"github.com/redlatch/redlatch/node"
)

// TestMain has memory be collected less often than by default: states are kept,
// and little of what is allocated is garbage. Under the race detector it runs the same
// tests without: a search has one goroutine, so that the detector could find nothing,
// and it takes ten times as long.
func TestMain(m *testing.M) {
	if race.Enabled {
		again := exec.Command("go", append([]string{"test", "-count=1", "-vet=off", "-timeout=0", "-args"}, os.Args[1:]...)...)
		again.Stdout, again.Stderr = os.Stdout, os.Stderr
		if again.Run() != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// all has every instance be searched, and not the small ones alone: make model.
var all = os.Getenv("REDLATCH_EXPLORE") == "all"

// further is a bound of the default suite, or the one of make model.
func further(bound, model int) int {
	if all {
		return model
	}
	return bound
}

// mostStates bounds the search of an instance that has no bound of its own.
func mostStates() int {
	if n, err := strconv.Atoi(os.Getenv("REDLATCH_STATES")); err == nil {
		return n
	}
	return 3_000_000
}

// TestNoInterleavingBreaksAPromise searches the small instances to their end;
// make model searches all of them, to their end or to a bound.
func TestNoInterleavingBreaksAPromise(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long")
	}
	seen := map[string]int{}
	for _, in := range Instances() {
		if in.Tests == 0 && !all || !strings.Contains(in.Name, os.Getenv("REDLATCH_ONLY")) {
			continue
		}
		if in.Tests > 0 && !all {
			in.Depth = in.Tests
		}
		in.States = cmp.Or(in.States, mostStates())
		r := Search(in)
		if r.Bad != Fine {
			t.Errorf("%s: %v\n%s", in.Name, r.Bad, r.Story)
		}
		if in.Tests == whole && in.Depth == 0 && !r.Complete {
			t.Errorf("%s: not searched to its end", in.Name)
		}
		end := ""
		if !r.Complete {
			end = " (bound)"
		}
		t.Logf("| %s | %d%s | %d | %d | %.1f |", in.Name, r.States, end, r.Steps, r.Depth, r.Took.Seconds())
		for what, n := range r.Seen {
			seen[what] += n
		}
	}
	if os.Getenv("REDLATCH_ONLY") != "" {
		return
	}
	for _, what := range []string{
		node.Granted.String(), node.Held.String(), node.Absent.String(), node.Stale.String(), node.Quarantined.String(),
		"lease", "extension", "repair", "lease that expired", "early expiry", "undo", "duplicate", "restart",
		"lease beside another", "second slot that was asked for", "downgrade", "notification", "yield", "pass",
		"request that was sent again", "break", "membership change, refused: false", "membership change, refused: true",
	} {
		if seen[what] == 0 {
			t.Errorf("never seen: %q; the search shows less than it seems to", what)
		}
	}
}

// TestClocksSetBackLockNobodyOut has all fences out of every window, and no time
// pass. There is a way to a lease.
func TestClocksSetBackLockNobodyOut(t *testing.T) {
	if r := Reach(two(setBack)); r.Story == "" {
		t.Errorf("no way to a lease in %d states", r.States)
	} else {
		t.Logf("a lease after %d steps\n%s", steps(r), r.Story)
	}
}

// TestInstancesAreWithinTheParametersOfTheDesign compares the quarantine of the
// instances with what clients ask for: theirs is no longer.
func TestInstancesAreWithinTheParametersOfTheDesign(t *testing.T) {
	for _, in := range Instances() {
		g := newMachine(in).guard[0]
		if least := protocol.Quarantine(g.MaxTTL, g.Window, 0); in.Skew == 0 && in.Window > 0 && g.Quarantine > least {
			t.Errorf("%s: a quarantine of %v, and the design has %v", in.Name, g.Quarantine, least)
		}
	}
}
