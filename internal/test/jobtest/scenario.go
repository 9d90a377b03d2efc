//go:build unix

package jobtest

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/processes"
)

// A Group is two replicas, A and B.
type Group struct {
	t        testing.TB
	File     File
	replicas map[string]*processes.Process
}

// StartGroup starts two replicas with their locks on so many servers. more are
// the flags of B alone.
func StartGroup(t testing.TB, servers int, flags []string, more ...string) *Group {
	t.Helper()
	_, env := processes.Quorum(t, servers)
	g := &Group{t, File(filepath.Join(t.TempDir(), "events")), map[string]*processes.Process{}}
	for _, name := range []string{"A", "B"} {
		args := append([]string{"-replica", name, "-file", string(g.File)}, flags...)
		if name == "B" {
			args = append(args, more...)
		}
		g.replicas[name] = processes.Start(t, name, env, args...)
	}
	for _, p := range g.replicas {
		p.Line("started")
	}
	return g
}

// AwaitEnds waits until the jobs of a replica, or of all, have ended so many
// more times.
func (g *Group) AwaitEnds(replica string, more int) {
	g.t.Helper()
	before := Count(g.File.Events(g.t), End, replica)
	g.File.Await(g.t, "ends of jobs", func(e []Event) bool { return Count(e, End, replica) >= before+more })
}

// AwaitTicks waits until the scheduler of each replica was due so many times.
func (g *Group) AwaitTicks(n int) {
	g.t.Helper()
	g.File.Await(g.t, "ticks", func(e []Event) bool {
		return Count(e, Tick, "A") >= n && Count(e, Tick, "B") >= n
	})
}

// KillHolder kills the replica that runs the job, in the middle of it. It
// returns the run that was cut off, and the name of the other replica.
func (g *Group) KillHolder() (cut Event, survivor string) {
	g.t.Helper()
	g.File.Hold(g.t)
	g.File.Await(g.t, "a run that is held", func(e []Event) bool {
		i := slices.IndexFunc(e, func(e Event) bool { return e.Kind == Held })
		if i >= 0 {
			cut = e[i]
		}
		return i >= 0
	})
	// The other replica is due to run the job meanwhile, and must not.
	time.Sleep(Step + Step/2)
	// Noted before: the survivor may go on as soon as the other one is dead.
	if err := g.File.Note(Killed, cut.Replica, cut.Due); err != nil {
		g.t.Fatal(err)
	}
	g.replicas[cut.Replica].Kill()
	g.File.Go(g.t)
	return cut, map[string]string{"A": "B", "B": "A"}[cut.Replica]
}

// Stop stops the schedulers that still run, waits until their jobs have ended,
// and returns all that the replicas did.
func (g *Group) Stop() []Event {
	g.t.Helper()
	events := g.File.Events(g.t)
	for name, p := range g.replicas {
		if Count(events, Killed, name) > 0 {
			continue
		}
		p.Type("stop")
		if code := p.Wait(); code != 0 {
			g.t.Fatalf("%s exits with %d: %s", name, code, p.Said())
		}
	}
	return g.File.Events(g.t)
}

// MustHold fails the test if two runs overlap or a time was run twice, or if a
// time at which the job was due on one of the replicas was not run.
func (g *Group) MustHold(events []Event, replicas ...string) {
	g.t.Helper()
	for _, v := range Violations(events) {
		g.t.Error(v)
	}
	for _, name := range replicas {
		if m := Missing(events, name); len(m) > 0 {
			g.t.Errorf("%s was due to run the job at %v, and no replica did", name, m)
		}
	}
	g.log()
}

// MustFail fails the test if no violation of a kind shows: a test that passes
// without what it tests would show nothing.
func (g *Group) MustFail(events []Event, kind string) {
	g.t.Helper()
	found := Violations(events)
	if !slices.ContainsFunc(found, func(v string) bool { return strings.HasPrefix(v, kind) }) {
		g.t.Errorf("sabotaged, the replicas show %q and nothing of %q", found, kind)
	}
	g.log()
}

// log shows what happened, if the test failed.
func (g *Group) log() {
	if !g.t.Failed() {
		return
	}
	g.t.Log(Text(g.File.Events(g.t)))
	for name, p := range g.replicas {
		g.t.Logf("%s said:\n%s", name, p.Said())
	}
}
