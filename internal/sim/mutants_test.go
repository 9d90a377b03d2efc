package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A mutant is one line of the algorithm, or of the model of a server, made
// wrong. File is relative to the module's root; Old occurs there once.
type mutant struct {
	name, file, old, wrong string
	flavour                Flavour // histories that have most of what triggers it
}

var mutants = []mutant{
	{"a quorum is half of the nodes", "internal/protocol/round.go",
		"return n/2 + 1 }", "return max(n/2, 1) }", Plain},
	{"drift is dropped", "internal/protocol/round.go",
		"return ttl - elapsed - Drift(ttl) }", "return ttl - elapsed }", Plain},
	{"validity is counted from the reply", "internal/protocol/held.go",
		"	c.moveDeadline(start + Validity(c.cfg.TTL, 0))", "	c.moveDeadline(v.Now() + Validity(c.cfg.TTL, 0))", Keeper},
	{"an extension is counted from the reply", "internal/protocol/held.go",
		"if to := c.round.Start + Validity(c.cfg.TTL, 0);", "if to := now + Validity(c.cfg.TTL, 0);", Keeper},
	{"undo only where it was granted", "internal/protocol/request.go",
		"	case e.Fault.sent(), e.Fault == NoFault && e.Reply.Rank > 0:", "	case e.Fault == NoFault && e.Reply.Rank > 0:", Crowd},
	{"a late grant is not undone", "internal/protocol/end.go",
		"	if c.lease.cause == WasDetached || m.holds == nothing {", "	if true || m.holds == nothing {", Plain},
	{"the fence is not checked", "node/token.go",
		"	case token <= fence:\n		return Stale", "	case false:\n		return Stale", Plain},
	{"the fence is checked where it is held alone", "internal/nodestate/ops.go",
		"			return e.wait(req, node.Held, s)\n		}\n		if status := e.judge(req, s.now); status", "			return e.wait(req, node.Held, s)\n		}\n		if status := node.Judge(req.Token, 0, s.now, req.Window); status", Plain},
	{"a token may be ahead of the window", "node/token.go",
		"case int64(token) > newest:", "case int64(token) > newest && false:", Plain},
	{"a release leaves the fence", "internal/nodestate/ops.go",
		"	if verdict != node.Ahead {\n", "	if verdict == node.Ahead {\n", Plain},
	{"fences are kept for the time to live alone", "internal/runner/send.go",
		"req.Retention = max(cl.c.cfg.FenceRetention, 4*req.Window, req.TTL+req.Window)", "req.Retention = req.TTL", Rare},
	{"the guard goes by the address", "internal/nodestate/marker.go",
		"case m.ID != s.ID || m.setBack(now):", "case m.setBack(now):", Plain},
	{"a flush leaves the marker", "internal/nodestate/server.go",
		"	s.Marker = Marker{}\n", "", Plain},
	{"a node that forgot is believed at once", "internal/nodestate/marker.go",
		"case m.TrustedFrom.After(now):", "case false:", Plain},
	{"the quarantine is half as long", "internal/protocol/trust.go",
		"q := max(maxTTL, 3*window) + maxTTL/15", "q := max(maxTTL, 3*window) / 2", Plain},
	{"one node is enough to extend", "internal/protocol/held.go",
		"	case t.Won() && Validity(c.cfg.TTL, now-c.round.Start) > 0:", "	case t.Granted > 0 && Validity(c.cfg.TTL, now-c.round.Start) > 0:", Keeper},
	{"an extension creates", "internal/nodestate/ops.go",
		"	if own < 0 {\n		return e.missing(req)\n	}\n	h := ", "	if !e.held() {\n		e.grant(req, req.Share, -1, s.now)\n		own = 0\n	}\n	if own < 0 {\n		return e.missing(req)\n	}\n	h := ", Plain},
	{"the deadline moves before it is confirmed", "internal/protocol/held.go",
		"	return c.ask(v, node.OpExtend, c.all(), out)", "	c.moveDeadline(v.Now() + Validity(c.cfg.TTL, 0))\n	return c.ask(v, node.OpExtend, c.all(), out)", Keeper},
	{"a loss is not reported", "lease.go",
		"	l.cancel(l.cause)\n", "", Plain},
	{"a lease ends when a call says so", "internal/runner/claim.go",
		"	left := cl.core.Deadline() - cl.c.clock.Uptime()\n", "	left := time.Hour\n", Plain},
	{"a release frees another's lock", "internal/nodestate/ops.go",
		"	status := e.taken()\n	switch {\n	case own < 0:\n", "	status := e.taken()\n	own = min(max(own, 0), len(e.Holders)-1)\n	switch {\n	case own < 0:\n", Plain},
	{"a lock that is held is granted", "internal/nodestate/ops.go",
		"	share, fits := e.Holders.Place(req.Share, own)\n	switch {\n	case !fits:", "	if own < 0 && s.now.UnixMicro()%7 == 0 {\n		e.Holders = nil\n	}\n	share, fits := e.Holders.Place(req.Share, own)\n	switch {\n	case !fits:", Plain},
	{"a repair may come late", "internal/protocol/held.go",
		"	req.Until = time.UnixMicro(now).Add(c.cfg.Limit)", "	_ = time.UnixMicro(now)", Keeper},
	{"a notification is swallowed", "internal/runner/inbox.go",
		"	if cl != nil {\n		cl.woken(i, wake)", "	if cl != nil && !wake.Kind.Asks() {\n		cl.woken(i, wake)", Plain},
	{"a release wakes nobody", "internal/nodestate/ops.go",
		"	e.Queue.serve(e.Holders, s)\n	return status", "	return status", Plain},
	{"nobody yields", "internal/protocol/yield.go",
		"	return c.sendYield(v, grants, out)\n", "	c.yield.kept = grants\n	return c.yieldOver(v, out)\n", Plain},
	{"a release goes to the nodes that granted in time", "internal/protocol/end.go",
		"m.released = !m.inFlight || m.holds == granted;", "m.released = m.holds == granted;", Plain},
}

// others are mutants that only few histories would show, and that a test made
// for them finds: "NAME PACKAGE".
var others = []struct{ name, file, old, wrong, test string }{
	{"grants of the round before count", "internal/protocol/gather.go",
		"	case c.nodes[i].seq == g.round:\n", "	case false:\n", "TestMinoritiesThatComeLateAreSettled ."},
	{"a repair is not undone", "internal/protocol/end.go",
		"	case !m.released || e.Op == node.OpRepair:", "	case !m.released:", "TestRepairThatComesLateLeavesNothing ."},
	{"the release does not overtake", "internal/protocol/end.go",
		"		req.Token = max(req.Token, c.earlier.upTo(c.plausible(v)))", "		_ = c.earlier", "TestReleaseOvertakesEarlierProposals ."},
	{"an offer is carried out as often as it comes", "internal/nodestate/ops.go",
		"	case refused(verdict):\n		return verdict\n	case e.Queue", "	case refused(verdict) && false:\n		return verdict\n	case e.Queue", "TestConformance ./memory"},
	{"a token may be behind the window", "node/token.go",
		"case int64(token) < oldest:", "case int64(token) < oldest && false:", "TestConformance ./memory"},
	{"nobody keeps at a release that failed", "internal/runner/undo.go",
		"		if r := m.Call(ctx, req); r.Err != nil {\n			m.janitor.add(m, req)", "		if r := m.Call(ctx, req); r.Err != nil && false {\n			m.janitor.add(m, req)", "TestGrantOfANodeThatWasFrozenForLongIsUndone ."},
	{"several names are locked in the caller's order", "several.go",
		"	slices.Sort(names)\n", "", "TestCallersOfSomeOfTheSameNamesDoNotWaitInACircle ."},
	{"the loss of one of several names is not the end of all", "several.go",
		"all.cancel(context.Cause(l.Context()))", "_ = all", "TestLockAllAsksInOneOrderAndLocksEachNameOnce ."},
	{"a wait for several names goes on after a loss", "several.go",
		"stop(context.Cause(all.ends))", "_ = stop", "TestLossWhileWaitingForAnotherNameEndsTheWait ."},
	{"a leader that lost does not wait again", "lead.go",
		"case leads && lost != nil:", "case leads && lost != nil && name == \"\":", "TestLeaderThatLostWaitsAgainWhenItsFunctionHasReturned ."},
	{"a candidate gives up in an outage", "lead.go",
		"case !leads && patient && errors", "case !leads && patient && warned && errors", "TestCandidateWaitsForServersUnlessItHasALimit ."},
	{"a leader resigns before its function has returned", "do.go",
		"stop := context.AfterFunc(lease.Context(), func() {", "stop := context.AfterFunc(ctx, func() { lease.Release(context.Background());", "TestLeaderReleasesAfterItsFunctionHasReturned ."},
}

// Rare is for a mutant that needs more histories of every flavour: about one in
// a thousand has a request that comes so late.
const Rare Flavour = "rare"

// mutantSeeds is the number of histories within which each mutant must be
// found.
const mutantSeeds = 1000

// seeds is how many seeds that takes: about one in seven has a given flavour.
func (m mutant) seeds() int {
	switch m.flavour {
	case Plain:
	case Rare:
		return 4 * mutantSeeds
	default:
		return 7 * mutantSeeds
	}
	return mutantSeeds
}

// TestEveryMutantIsFoundOut applies each mutant to a copy, and has the
// simulation find it. A mutant that it does not find shows a gap in the
// simulation.
func TestEveryMutantIsFoundOut(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the code anew for every mutant")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	only := os.Getenv("REDLATCH_MUTANT")
	for _, m := range mutants {
		if !strings.Contains(m.name, only) {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			out, err := m.run(t, root, "^TestNoHistoryBreaksAPromise$", "./internal/sim")
			if err == nil {
				t.Fatalf("%d histories went well without it:\n%s", mutantSeeds, out)
			}
			if !strings.Contains(out, "breaks a promise: ") {
				t.Fatalf("it was not found out by a broken promise:\n%s", out)
			}
			_, found, _ := strings.Cut(out, "seed ")
			found, _, _ = strings.Cut(found, "\n")
			t.Log("seed " + found)
		})
	}
}

// TestEveryOtherMutantIsFoundOutByItsTest does the same with the mutants that
// the simulation would take too long to find.
func TestEveryOtherMutantIsFoundOutByItsTest(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the code anew for every mutant")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range others {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			test, folder, _ := strings.Cut(m.test, " ")
			out, err := mutant{name: m.name, file: m.file, old: m.old, wrong: m.wrong}.run(t, root, "^"+test+"$", folder)
			if err == nil || !strings.Contains(out, "--- FAIL: "+test) {
				t.Fatalf("%s does not find it: %v\n%s", m.test, err, out)
			}
		})
	}
}

// run builds a package's tests with the mutant in it, and runs one of them.
func (m mutant) run(t *testing.T, root, test, folder string) (string, error) {
	source, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), m.old); n != 1 {
		t.Fatalf("%s has %d places that read\n%s\nwant 1: has the code changed?", m.file, n, m.old)
	}
	dir := t.TempDir()
	wrong := filepath.Join(dir, "wrong.go")
	if err := os.WriteFile(wrong, []byte(strings.Replace(string(source), m.old, m.wrong, 1)), 0o666); err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, m.file): wrong}})
	if err != nil {
		t.Fatal(err)
	}
	file, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "sim.test")
	if err := os.WriteFile(file, overlay, 0o666); err != nil {
		t.Fatal(err)
	}
	// Always without the race detector: it looks for other faults, and takes
	// ten times as long.
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", file, "-o", binary, folder)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("it does not compile: %v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // a mutant may loop for ever
	defer cancel()
	run := exec.CommandContext(ctx, binary, "-test.run", test, "-test.v")
	run.Dir = dir
	run.Env = append(os.Environ(), fmt.Sprintf("REDLATCH_SEEDS=1:%d", m.seeds()), "REDLATCH_RAW=1", "REDLATCH_FLAVOUR="+strings.TrimSuffix(string(m.flavour), string(Rare)))
	out, err := run.CombinedOutput()
	return string(out), err
}
