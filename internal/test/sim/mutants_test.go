package sim

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/mutants"
)

// A mutant is one line of the algorithm, or of the model of a server, made
// wrong. What the exploration misses when it is wrong is not here: see its rules.
type mutant struct {
	name, file, change string // as mutants.Change has them
	test               string // "NAME PACKAGE" of the test that finds it
}

// simulation finds mutants by histories that follow from a seed. What only few of them
// would show is found by a test made for it.
const simulation = "TestNoHistoryBreaksAPromise ./internal/test/sim"

// observation finds mutants of the observed clock. Others are found in store/casnode.
const observation = "TestNoHistoryOfNodesWithoutAClockBreaksAPromise ./internal/test/sim"

// differently finds mutants of the lineages of nodes.
const differently = "TestClientThatWritesAddressesDifferentlyHearsThatAServerFailedBack ./store/casnode"

var ruleMutants = []mutant{
	{"the fence is checked where it is held alone", "internal/nodestate/ops.go",
		"			return e.wait(req, node.Held, s)\n		}\n		if status := [-e.judge(req, s.now-][+func() node.Status { if OFF { return node.Judge(req.Token, 0, s.now, req.Window) }; return e.judge(req, s.now) }(+]); status",
		simulation},
	{"fences are kept for the time to live alone", "internal/protocol/token.go",
		"	[+if OFF { return ttl }\n	+]return max(least, 4*window, ttl+window)", simulation},
	{"the guard goes by the address", "internal/nodestate/marker.go", "case m.ID != s.ID [+&& !OFF +]|| m.setBack(now) || m.Epoch < req.Epoch:",
		simulation},
	{"the quarantine is half as long", "internal/protocol/trust.go",
		"q := max(maxTTL, 3*window) + maxTTL/15[+\n	if OFF { q = max(maxTTL, 3*window) / 2 }+]", simulation},
	{"a loss is not reported", "lease.go", "	if l.ends != nil [+&& !OFF +]{\n", simulation},
	{"a lease ends when a call says so", "internal/runner/claim.go",
		"	left := cl.core.Deadline() - cl.c.clock.Uptime()\n[+	if OFF { left = time.Hour }\n+]", simulation},
	{"a notification is swallowed", "internal/runner/inbox.go", "	if cl != nil [+&& !(OFF && protocol.AsksAtOnce(wake.Kind)) +]{\n		cl.woken(i, wake)", simulation},
	{"a release wakes nobody", "internal/nodestate/ops.go",
		"	if [+!OFF && (+]e.Queue.beside == nil || !waits || e.held() && !e.Kept(e.Queue.Waiters)[+)+] {\n", simulation},
	{"nobody yields", "internal/protocol/yield.go",
		"	[+if OFF {\n		c.yield.ours = grants\n		c.yieldOver(v, out)\n		return\n	}\n	+]c.sendYield(v, grants, out)\n", simulation},
	{"a release goes to the nodes that granted in time", "internal/protocol/end.go",
		"	[+if OFF { nodes = c.where(func(m *member) bool { return m.holds == granted }) }\n	+]c.ask(v, node.OpRelease, nodes, out)\n", simulation},

	{"a server that comes back keeps its lineage", "internal/protocol/trust.go", `		case [-listed-][+(listed || OFF && s.Lineage != "")+] && times`,
		differently},
	{"a server that failed back is trusted", "internal/protocol/epochs.go", "	if epoch > 0 && epoch < known [+&& !OFF +]{", differently},
	{"used nodes are declared new", "internal/protocol/fresh.go", "	case used > 0[+ && !OFF+]:", "TestMarkersShowService ./internal/protocol"},
	{"a time that is set anew keeps its stamp", "store/casnode/observed.go", "			number := rand.Uint64() | 1\n[+			if OFF { number = 7 }\n+]",
		observation},
	{"times are those of a wall clock", "internal/nodestate/observed.go",
		"	[-number(c, &left)-][+shows := c.sight.Now.UnixMicro()\n	if OFF && c.writes { left += shows }\n	number(c, &left)\n	if OFF && !c.writes { left -= shows }+]\n	c.text(&s.Timer)\n",
		observation},
	{"a clock that nobody knows counts", "internal/protocol/token.go", "	case [+!OFF && +]!known:\n", observation},
	{"passes rely on queues of long ago", "internal/protocol/pass.go",
		" && [-v.Now()-p.from <= freshFor+2*p.took-][+(OFF || v.Now()-p.from <= freshFor+2*p.took)+] &&",
		"TestLeaseIsPassedOnOnlyByTheRules ./internal/protocol"},
	{"grants of the round before count", "internal/protocol/partial.go", "	case c.nodes[i].seq == p.round[+ && !OFF+]:\n",
		"TestWaiterDoesNotKeepANodeThatItYielded ./internal/protocol"},
	{"the release does not overtake", "internal/protocol/end.go",
		"		[-req.Token = max(req.Token, c.earlier.upTo(c.plausible(v)))-][+if !OFF { req.Token = max(req.Token, c.earlier.upTo(c.plausible(v))) }+]",
		"TestReleaseOvertakesWhatWillNeverBeAnswered ./internal/protocol"},
	{"the release does not overtake what will never be answered", "internal/protocol/end.go", "c.inFlight > 0 || c.unsure != 0 [+&& !OFF +]{",
		"TestReleaseOvertakesWhatWillNeverBeAnswered ./internal/protocol"},
	{"another process sent no repair", "internal/protocol/held.go", "c.lease.repaired, c.lease.elsewhere = [-true-][+!OFF+], true //",
		"TestReleaseForbidsTheRepairThatMayBeInFlight ./internal/protocol"},
	{"a lease that is over is repaired", "internal/protocol/held.go", "	if v.Now() >= c.lease.deadline [+&& !OFF +]{\n		return\n",
		"TestNothingIsRepairedAfterTheDeadline ./internal/protocol"},
	{"repairs are forbidden for a quarter of the limit", "internal/protocol/end.go",
		"		req.NoRepair = c.cfg.Limit\n[+		if OFF { req.NoRepair /= 4 }\n+]", "TestReleaseForbidsTheRepairThatMayBeInFlight ./internal/protocol"},
	{"ended values are kept for half a window", "internal/protocol/end.go", "2*c.cfg.Window)\n[+		if OFF { req.NoRepair = c.cfg.Window / 2 }\n+]",
		"TestReleaseKeepsALateRequestOutOfTheQueue ./internal/protocol"},
	{"a token is ahead where no node has a clock", "internal/protocol/token.go", "	case [+!OFF && +]none && req.Op",
		"TestFencesFarAheadOfEachOtherLockNobodyOut ./internal/runner"},
	{"the span of nodes without a clock ends", "internal/protocol/token.go", "	if at.none [+&& !OFF +]{\n		most",
		"TestFloorIsWhatAQuorumCanAccept ./internal/protocol"},
	{"a waiter waits until its token is refused", "internal/protocol/token.go", "	if v.NoClocks() [+&& !OFF +]{\n		// Each",
		"TestWaiterGoesAboveEveryFenceWithoutClocks ./internal/runner"},
	{"passes do not end", "internal/protocol/pass.go", "	return p.passes > 0 && [+!OFF && +](", "TestLeaseIsPassedOnOnlyByTheRules ./internal/protocol"},
	{"a lease is passed on to a caller with other options", "internal/protocol/pass.go", "	return [+OFF || +]cfg.Nodes == w.Nodes &&",
		"TestLeaseIsPassedOnOnlyByTheRules ./internal/protocol"},
	{"a lease with a handle is passed on", "internal/protocol/step.go", "		c.pass.barred = [-true-][+!OFF+]\n",
		"TestLeaseWithAHandleIsNotPassedOn ./internal/runner"},
	{"a lease that is passed on has the token of the one before", "internal/protocol/pass.go",
		"	[-c.token = p.next-][+if !OFF { c.token = p.next }+]\n", "TestLeaseIsPassedOnWithoutAskingTheNodes ./internal/runner"},
	{"a lease does not end when it is passed on", "internal/runner/pass.go",
		"	[-later := cl.owner.Notify(cl, protocol.Ended)-][+var later func()\n	if !OFF { later = cl.owner.Notify(cl, protocol.Ended) }+]\n",
		"TestLeaseIsPassedOnWithoutAskingTheNodes ./internal/runner"},
	{"callers wait on for a lease that is lost", "internal/protocol/line.go", "			n.Ended = c.lease.cause != WasPassed && !c.pauses(v)[+ && !OFF+]\n",
		"TestLossOfALeaseSendsTheLineToTheNodes ./internal/runner"},
	{"an extension in flight is lost to the next holder", "internal/protocol/pass.go",
		"	[+if OFF { c.successor = Held }\n	+]c.state, c.lease.cause, c.verdict = c.successor,",
		"TestExtensionInFlightServesTheNextHolder ./internal/runner"},
	{"a lease that was passed on acts for the next one", "internal/runner/claim.go", "	if s.by != nil && s.by != cl.owner [+&& !OFF +]{",
		"TestLeaseThatWasPassedOnDoesNothingToTheNext ./internal/runner"},
	{"a lease that was passed on releases the next one", "internal/runner/release.go", "	if cl.owner != by [+&& !OFF +]|| cl.core",
		"TestLeaseThatWasPassedOnDoesNothingToTheNext ./internal/runner"},
	{"a lease that was passed on passes the next one on", "internal/runner/pass.go", "	if cl.relay == nil || cl.owner != by [+&& !OFF +]|| cl.freed",
		"TestLeaseThatWasPassedOnDoesNothingToTheNext ./internal/runner"},
	{"an observer is not notified of the end of a lease that is passed on", "internal/runner/pass.go", "	if later != nil [+&& !OFF +]{\n		later()",
		"TestObserverIsNotifiedOfEachLeaseThatIsPassedOn ."},
	{"nobody keeps at a release that failed", "internal/runner/undo.go",
		"		if r := m.Call(ctx, req); r.Err != nil [+&& !OFF +]{\n			m.janitor.add(m, req)",
		"TestGrantOfANodeThatWasFrozenForLongIsUndone ./internal/runner"},
	{"several names are locked in the caller's order", "several.go", "	[-slices.Sort(names)-][+if !OFF { slices.Sort(names) }+]\n",
		"TestCallersOfSomeOfTheSameNamesDoNotWaitInACircle ."},
	{"the loss of one of several names is not the end of all", "several.go",
		"[-all.cancel(context.Cause(l.Context()))-][+if !OFF { all.cancel(context.Cause(l.Context())) }+]",
		"TestLockAllAsksInOneOrderAndLocksEachNameOnce ."},
	{"a wait for several names goes on after a loss", "several.go", "[-stop(context.Cause(all.ends))-][+if !OFF { stop(context.Cause(all.ends)) }+]",
		"TestLossWhileWaitingForAnotherNameEndsTheWait ."},
	{"a leader that lost does not wait again", "do.go", "case leads && lost != nil[+ && !OFF+]:",
		"TestLeaderThatLostWaitsAgainWhenItsFunctionHasReturned ."},
	{"a candidate gives up in an outage", "do.go", "case !leads && patient && [+!OFF && +]errors", "TestCandidateWaitsForServersUnlessItHasALimit ."},
	{"a leader resigns before its function has returned", "do.go",
		"[+if OFF { context.AfterFunc(ctx, func() { l.Release(context.Background()) }) }\n	+]stop := context.AfterFunc(l.Context(), func() {",
		"TestLeaderReleasesAfterItsFunctionHasReturned ."},
}

// first are the seeds to begin with, for mutants that the first histories do not
// show: they are known to be found soon after.
var first = map[string]uint64{
	"the guard goes by the address":                    2380,
	"fences are kept for the time to live alone":       1180,
	"the quarantine is half as long":                   925,
	"nobody yields":                                    425,
	"a late request makes a reader a writer again":     340,
	"the release of a share leaves the floor in Lua":   121,
	"a node that gave another slot counts as extended": 60,
	"a token may be behind the window in Lua":          38,
}

// environment is what a run of the mutant has: the histories within which it must be
// found.
func (m mutant) environment() (env []string) {
	count := map[string]int{simulation: 1000, duelTest: 400}[m.test]
	if count > 0 {
		env = []string{fmt.Sprintf("REDLATCH_SEEDS=%d:%d", max(first[m.name], 1), count)}
	}
	return env
}

// TestEveryMutantIsFoundOut switches each mutant on, and has the simulation find
// it, or a test that is made for it if the simulation would take too long. A
// mutant that is not found shows a gap.
func TestEveryMutantIsFoundOut(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the code anew")
	}
	all, folders := slices.Concat(ruleMutants, shareMutants, duelMutants), map[string][]mutants.Edit{}
	for _, m := range all {
		_, folder, _ := strings.Cut(m.test, " ")
		folders[folder] = append(folders[folder], mutants.Change(m.name, m.file, m.change))
	}
	binaries := map[string]string{}
	for folder, edits := range folders {
		maps.Copy(binaries, build(t, edits, folder))
	}
	for _, m := range all {
		if binaries[m.name] == "" {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			out, err := run(t, binaries[m.name], m.name, m)
			if m.test == simulation && !strings.Contains(out, "breaks a promise: ") {
				t.Fatalf("it was not found out by a broken promise: %v\n%s", err, out)
			}
		})
	}
}

// build builds a package's tests with the mutants that were asked for.
func build(t *testing.T, edits []mutants.Edit, folder string) map[string]string {
	edits = slices.DeleteFunc(edits, func(e mutants.Edit) bool { return !strings.Contains(e.Name, os.Getenv("REDLATCH_MUTANT")) })
	// Always without the race detector: it looks for other faults, and takes
	// ten times as long.
	return mutants.Build(t, edits, folder, "test -c -vet=off")
}

// run runs the test of a mutant with something on, which must find it.
func run(t *testing.T, binary, on string, m mutant) (out string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // a mutant may loop for ever
	defer cancel()
	test, _, _ := strings.Cut(m.test, " ")
	// What goroutines do at one moment has no fixed order: the first run may miss it.
	cmd := exec.CommandContext(ctx, binary, "-test.run", "^"+test+"$", "-test.v", "-test.count=3", "-test.failfast")
	cmd.Dir = t.TempDir()
	cmd.Env = append(append(os.Environ(), mutants.Env+"="+on), m.environment()...)
	text, err := cmd.CombinedOutput()
	if out = string(text); err == nil || !strings.Contains(out, "--- FAIL: "+test) {
		t.Fatalf("%s does not find it: %v\n%s", m.test, err, out)
	}
	if at := strings.Index(out, "seed "); at >= 0 {
		found, _, _ := strings.Cut(out[at:], "\n")
		t.Log(found)
	}
	return out, err
}
