// Package jobtest checks what two replicas of a scheduler do, in virtual time.
// Replicas are schedulers in one process, each with a client and a network of its
// own, on nodes in memory. They note when they were due to run a job, and when the
// job began and ended.
package jobtest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/locktest"
)

// Step is the time between two runs of a replica's job, which is due at whole
// multiples of it. Spec is the same for a scheduler, with a field for seconds.
const (
	Step = 2 * time.Second
	Spec = "*/2 * * * * *"
)

// Job is the name of the job.
const Job = "report"

// The kinds of event.
const (
	Tick   = "tick"   // the replica's scheduler was due to run the job
	Early  = "early"  // the job begins before it is due
	Start  = "start"  // the job began
	End    = "end"    // the job ended
	Killed = "killed" // the replica is dead
)

// Event is what a replica noted.
type Event struct {
	Kind, Replica string
	Due           time.Time // when the job was due, by the scheduler
}

// Options are the settings of both replicas, but for Late.
type Options struct {
	Lock redlatch.LockOptions
	Work time.Duration // how long the job takes
	Late time.Duration // by how much the clock of replica B is behind
	Mode string        // which sort of lock, for schedulers that have several
}

// Starter starts the scheduler of a replica and returns how to stop it: stop waits
// for running jobs.
type Starter func(*Replica) (stop func(), err error)

// Replica is a scheduler with its client.
type Replica struct {
	Options
	Name  string
	Locks *redlatch.Client

	host  *locktest.Host
	group *group
	dead  bool // guarded by the group's mu
	stop  func()
}

// group is two replicas, A and B.
type group struct {
	replicas []*Replica
	over     chan struct{} // closed at the end: a job of the dead returns

	mu     sync.Mutex
	events []Event
	kill   bool // the next job dies in the middle, with its replica
}

func startGroup(t *testing.T, nodes int, o Options, start Starter) *group {
	t.Helper()
	g := &group{over: make(chan struct{})}
	for i, host := range locktest.NewHosts(t, 2, nodes, redlatch.Options{}) {
		r := &Replica{Options: o, Name: string(rune('A' + i)), Locks: host.Client, host: host, group: g}
		if i == 0 {
			r.Late = 0
		}
		var err error
		r.stop, err = start(r)
		check.Must(t, err)
		g.replicas = append(g.replicas, r)
	}
	return g
}

// end stops the schedulers, waits until their jobs have ended, and returns all that
// the replicas did.
func (g *group) end() []Event {
	close(g.over)
	for _, r := range g.replicas {
		g.mu.Lock()
		dead := r.dead
		g.mu.Unlock()
		if dead {
			r.Locks.Close() // or its jobs wait for nodes that it cannot reach
		}
		synctest.Wait()
		r.stop()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.events
}

// Now returns the time of the replica's clock.
func (r *Replica) Now() time.Time { return time.Now().Add(-r.Late) }

// Due returns the time for which a job runs that is started now.
func (r *Replica) Due() time.Time { return r.Now().Truncate(Step) }

// Note notes an event. The dead note nothing.
func (r *Replica) Note(kind string, due time.Time) {
	r.group.mu.Lock()
	defer r.group.mu.Unlock()
	if !r.dead {
		r.group.events = append(r.group.events, Event{kind, r.Name, due.UTC()})
	}
}

// Run is the job, run for the time at which it was due.
func (r *Replica) Run(due time.Time) {
	if r.Now().Before(due) {
		r.Note(Early, due)
	}
	r.Note(Start, due)
	time.Sleep(r.Work)
	if r.dies() {
		// The other replica is due to run the job meanwhile, and must not.
		time.Sleep(Step + Step/2)
		r.Note(Killed, due)
		r.group.mu.Lock()
		r.dead = true
		r.group.mu.Unlock()
		for _, l := range r.host.Links {
			l.Cut()
		}
		<-r.group.over
	}
	r.Note(End, due)
}

func (r *Replica) dies() bool {
	r.group.mu.Lock()
	defer r.group.mu.Unlock()
	kill := r.group.kill
	r.group.kill = false
	return kill
}

// play runs two replicas for so many steps, on one node and on three, and checks
// what they did. With kill, the replica that runs the job after some steps dies in
// the middle of it.
func play(t *testing.T, o Options, start Starter, steps int, kill bool, check func(t *testing.T, events []Event)) {
	t.Helper()
	for _, nodes := range []int{1, 3} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := startGroup(t, nodes, o, start)
				time.Sleep(3 * Step)
				g.mu.Lock()
				g.kill = kill
				g.mu.Unlock()
				// Not while a job runs: gocron would spin, and time not pass.
				time.Sleep(time.Duration(steps)*Step + Step*3/4)
				events := g.end()
				if check(t, events); t.Failed() {
					t.Log(Text(events))
				}
			})
		})
	}
}

// Holds runs two replicas, and checks that no two runs overlap, that no time is
// run twice, and that each time at which a job was due was run.
func Holds(t *testing.T, o Options, start Starter) {
	t.Helper()
	play(t, o, start, 5, false, func(t *testing.T, events []Event) { mustHold(t, events, "A", "B") })
}

// Runs is Holds for a job that is due at other times on each replica: it runs once in
// each period.
func Runs(t *testing.T, o Options, start Starter) {
	t.Helper()
	play(t, o, start, 5, false, func(t *testing.T, events []Event) {
		mustHold(t, events)
		if n := count(events, End, ""); n < 7 {
			t.Errorf("the job ran %d times in eight periods", n)
		}
	})
}

// KillLosesNoRun kills the replica that runs the job, in the middle of it. The
// other one must run what was cut off, and all that was due on it meanwhile: no
// two at a time, and none twice.
func KillLosesNoRun(t *testing.T, o Options, start Starter) {
	t.Helper()
	play(t, o, start, 10, true, func(t *testing.T, events []Event) {
		cut, survivor := killed(t, events)
		mustHold(t, events, survivor)
		ran := func(e Event) bool { return e.Kind == End && e.Due.Equal(events[cut].Due) && e.Replica == survivor }
		if !slices.ContainsFunc(events, ran) {
			t.Errorf("%s did not run what %s had begun at %v", survivor, events[cut].Replica, events[cut].Due)
		}
	})
}

// KillHasTheOtherGoOn kills the replica that runs the job, in the middle of it, and
// checks that the other one runs it from its first run on.
func KillHasTheOtherGoOn(t *testing.T, o Options, start Starter) {
	t.Helper()
	play(t, o, start, 12, true, func(t *testing.T, events []Event) {
		mustHold(t, events)
		cut, survivor := killed(t, events)
		after := slices.IndexFunc(events[cut:], func(e Event) bool { return e.Kind == Start })
		if after < 0 || count(events[cut:], End, survivor) < 3 {
			t.Fatalf("%s does not go on", survivor)
		}
		if m := missing(events[cut+after:], survivor); len(m) > 0 {
			t.Errorf("%s was due to run the job at %v, and did not", survivor, m)
		}
	})
}

// killed returns which event is the death of a replica, and the name of the other.
func killed(t *testing.T, events []Event) (at int, survivor string) {
	t.Helper()
	at = slices.IndexFunc(events, func(e Event) bool { return e.Kind == Killed })
	if at < 0 {
		t.Fatal("no replica died")
	}
	return at, map[string]string{"A": "B", "B": "A"}[events[at].Replica]
}

// mustHold fails the test if two runs overlap or a time was run twice, or if a time
// at which the job was due on one of the replicas was not run.
func mustHold(t *testing.T, events []Event, replicas ...string) {
	t.Helper()
	for _, v := range violations(events) {
		t.Error(v)
	}
	for _, name := range replicas {
		if m := missing(events, name); len(m) > 0 || count(events, Tick, name) < 4 {
			t.Errorf("%s was due %d times, and no replica ran the job of %v", name, count(events, Tick, name), m)
		}
	}
}

// count returns how many events of a kind a replica noted, or all replicas if the
// name is empty.
func count(events []Event, kind, replica string) int {
	n := 0
	for _, e := range events {
		if e.Kind == kind && (replica == "" || e.Replica == replica) {
			n++
		}
	}
	return n
}

// violations returns where two runs overlap, where a job ran again that had ended
// for the same time, and where it ran for a time at which it was not due or not due
// yet. A run that died with its replica has not ended.
func violations(events []Event) []string {
	var found []string
	var open []Event // the runs that have neither ended nor died with their replica
	ended := map[time.Time]string{}
	for _, e := range events {
		switch e.Kind {
		case Start:
			if !e.Due.Equal(e.Due.Truncate(Step)) {
				found = append(found, fmt.Sprintf("off: %s runs %s, when nothing was due", e.Replica, clock(e.Due)))
			}
			for _, o := range open {
				found = append(found, fmt.Sprintf("overlap: %s runs %s while %s runs %s", e.Replica, clock(e.Due), o.Replica, clock(o.Due)))
			}
			if by, ok := ended[e.Due]; ok {
				found = append(found, fmt.Sprintf("twice: %s runs %s, which %s has run", e.Replica, clock(e.Due), by))
			}
			open = append(open, e)
		case Early:
			found = append(found, fmt.Sprintf("early: %s runs %s before it is due", e.Replica, clock(e.Due)))
		case End, Killed:
			open = slices.DeleteFunc(open, func(o Event) bool { return o.Replica == e.Replica && (e.Kind == Killed || o.Due.Equal(e.Due)) })
			if e.Kind == End {
				ended[e.Due] = e.Replica
			}
		}
	}
	return found
}

// missing returns the times at which a job was due on a replica and which no replica
// ran to the end.
func missing(events []Event, replica string) []time.Time {
	ended := map[time.Time]bool{}
	for _, e := range events {
		if e.Kind == End {
			ended[e.Due] = true
		}
	}
	var due []time.Time
	for _, e := range events {
		if e.Kind == Tick && e.Replica == replica && !ended[e.Due] {
			due = append(due, e.Due)
		}
	}
	return due
}

// Text returns events for a test's log.
func Text(events []Event) string {
	var s strings.Builder
	for _, e := range events {
		fmt.Fprintf(&s, "%-6s %s %s\n", e.Kind, e.Replica, clock(e.Due))
	}
	return s.String()
}

func clock(t time.Time) string { return t.Format("15:04:05.999") }
