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
// wrong. File is from the module's root; Old stands there once.
type mutant struct {
	name, file, old, wrong string
	flavour                Flavour // of the histories that have most of what it takes
}

var mutants = []mutant{
	{"a quorum is half of the nodes", "round.go",
		"return n/2 + 1 }", "return max(n/2, 1) }", Plain},
	{"drift is dropped", "round.go",
		"return ttl - elapsed - driftOf(ttl)", "return ttl - elapsed", Plain},
	{"validity is counted from the reply", "lock.go",
		"a.opts, rd.start, rd.start+rd.elapsed+validity)", "a.opts, rd.start, rd.start+2*rd.elapsed+validity)", Keeper},
	{"an extension is counted from the reply", "lease.go",
		"rd.start, rd.start+rd.elapsed+validity)", "rd.start, rd.start+2*rd.elapsed+validity)", Keeper},
	{"undo only where it was granted", "undo.go",
		"return !errors.Is(r.Err, ErrUnsent)", "return !errors.Is(r.Err, ErrUnsent) && r.Err == nil", Crowd},
	{"a late grant is not undone", "claim.go",
		"undo, released := cl.over && cl.may.has(i), cl.freed.has(i)", "undo, released := false, cl.freed.has(i)", Plain},
	{"the fence is not checked", "node/token.go",
		"	case token <= fence:\n		return Stale", "	case false:\n		return Stale", Plain},
	{"the fence is checked where it is held alone", "memory/ops.go",
		"		if status := judge(req, e.fence, s.now); status != node.Granted {", "		if status := judge(req, 0, s.now); status != node.Granted {", Plain},
	{"a token may be ahead of the window", "node/token.go",
		"case int64(token) > newest:", "case false:", Plain},
	{"a release leaves the fence", "memory/ops.go",
		"	if verdict != node.Ahead {\n		e.raise(req, s.now)", "	if verdict == node.Ahead {\n		e.raise(req, s.now)", Plain},
	{"fences are kept for the time to live alone", "guard.go",
		"req.Retention = max(g.retention, 4*b.Window, req.TTL+b.Window)", "req.Retention = req.TTL", Plain},
	{"the guard goes by the address", "internal/sim/marker.go",
		"case m.id != s.id || m.setBack(now):", "case m.setBack(now):", Plain},
	{"a flush leaves the marker", "internal/sim/server.go",
		"	s.marker, s.virgin = nil, false", "	s.virgin = false", Plain},
	{"a node that forgot is believed at once", "internal/sim/marker.go",
		"case m.trusted.After(now):", "case false:", Plain},
	{"the quarantine is half as long", "guard.go",
		"q := max(maxTTL, 3*window) + maxTTL/15", "q := max(maxTTL, 3*window) / 2", Plain},
	{"one node is enough to extend", "lease.go",
		"case rd.won() && validity > 0:", "case rd.granted > 0 && validity > 0:", Keeper},
	{"an extension creates", "memory/ops.go",
		"	if !e.heldBy(req.Value) {\n		return e.taken()\n	}\n	e.until = now.Add(req.TTL)", "	if e.held() && !e.heldBy(req.Value) {\n		return e.taken()\n	}\n	e.grant(req, now)", Plain},
	{"the deadline moves before it is confirmed", "lease.go",
		"	req := l.request(node.OpExtend)\n", "	req := l.request(node.OpExtend)\n	l.c.keeper.confirm(l, l.c.clock.Uptime(), l.c.clock.Uptime()+validityOf(req.TTL, 0))\n", Keeper},
	{"a loss is not told", "keepalive.go",
		"	l.cancel(cause)\n", "", Plain},
	{"a lease ends when a call says so", "lease.go",
		"	left := l.deadline - l.c.clock.Uptime()\n	if l.cause != nil {", "	left := time.Hour\n	if l.cause != nil {", Plain},
	{"a release frees whoever has the lock", "memory/ops.go",
		"	case !e.heldBy(req.Value):\n	case req.Once", "	case !e.held():\n	case req.Once", Plain},
	{"a lock that is held is granted", "memory/ops.go",
		"	case e.held():\n		return e.wait(req, node.Held, s)", "	case e.held() && s.now.UnixMicro()%7 > 0:\n		return e.wait(req, node.Held, s)", Plain},
	{"a repair may come late", "guard.go",
		"	req.Until = r.Reply.Now.Add(limit)", "	_ = limit", Keeper},
	{"a wake is swallowed", "inbox.go",
		"	if cl == nil || cl.post(event{node: i, wake: wake}) || !wake.Kind.Asks() {", "	if cl == nil || wake.Kind.Asks() || cl.post(event{node: i, wake: wake}) {", Plain},
	{"a release wakes nobody", "memory/ops.go",
		"	s.fence, s.asker = e.fence, \"\"\n	e.queue.serve(!e.held(), s)", "	s.fence, s.asker = e.fence, \"\"", Plain},
	{"nobody yields", "turn.go",
		"	kept, next, ok := a.offer(ctx, granted)", "	kept, next, ok := granted, nodeSet(0), true", Plain},
	{"a release goes to the nodes that granted in time", "lease.go",
		"	rd := l.c.ask(ctx, l.name, req, l.underway(), nil,", "	rd := l.c.ask(ctx, l.name, req, allNodes(len(l.c.members))&^l.has, nil,", Plain},
}

// others are mutants that take what few histories have, and that a test finds
// which was made for it: "NAME PACKAGE".
var others = []struct{ name, file, old, wrong, test string }{
	{"grants of the round before count", "turn.go",
		"	case granted && late:\n		p.giveWay(ctx, bit)", "	case granted && late && false:\n		p.giveWay(ctx, bit)", "TestMinoritiesThatComeLateAreSettled ."},
	{"a repair is not taken back", "claim.go",
		"		released = false\n", "", "TestRepairThatComesLateLeavesNothing ."},
	{"the release does not overtake", "claim.go",
		"		req.Token = max(req.Token, cl.earlier.upTo(cl.c.plausible(req.Window)))", "		_ = cl.earlier", "TestReleaseOvertakesEarlierProposals ."},
	{"an offer is carried out as often as it comes", "memory/ops.go",
		"	case overtaken(verdict):\n		return verdict\n	case e.queue", "	case overtaken(verdict) && false:\n		return verdict\n	case e.queue", "TestConformance ./memory"},
	{"a token may be behind the window", "node/token.go",
		"case int64(token) < oldest:", "case false:", "TestConformance ./memory"},
	{"nobody keeps at a release that failed", "undo.go",
		"		if r := m.call(ctx, req); r.Err != nil {\n			m.janitor.add(m, req)", "		if r := m.call(ctx, req); r.Err != nil && false {\n			m.janitor.add(m, req)", "TestGrantOfANodeThatWasFrozenForLongIsUndone ."},
}

// mutantSeeds is within how many histories each mutant must be found out.
const mutantSeeds = 1000

// seeds is how many seeds that takes: about one in seven has a given flavour.
func (m mutant) seeds() int {
	if m.flavour != Plain {
		return 7 * mutantSeeds
	}
	return mutantSeeds
}

// TestEveryMutantIsFoundOut applies each sabotage to a copy, and has the
// simulation find it. One that it does not find is a hole in the simulation.
func TestEveryMutantIsFoundOut(t *testing.T) {
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

// TestEveryOtherMutantIsFoundOutByItsTest does so with those that the simulation
// would take too long to find.
func TestEveryOtherMutantIsFoundOutByItsTest(t *testing.T) {
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
	// Without the race detector, whatever this test runs with: it looks for
	// other things, and takes ten times as long.
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", file, "-o", binary, folder)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("it does not compile: %v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // a mutant may spin
	defer cancel()
	run := exec.CommandContext(ctx, binary, "-test.run", test, "-test.v")
	run.Dir = dir
	run.Env = append(os.Environ(), fmt.Sprintf("REDLATCH_SEEDS=1:%d", m.seeds()), "REDLATCH_RAW=1", "REDLATCH_FLAVOUR="+string(m.flavour))
	out, err := run.CombinedOutput()
	return string(out), err
}
