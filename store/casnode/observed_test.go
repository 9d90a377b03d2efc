package casnode_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/clockless"
	"github.com/redlatch/redlatch/internal/test/mutants"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/casnode"
)

// This file has histories of processes that share a store without a clock, in virtual
// time. Their clocks run at different rates, within the bound. Processes come and go,
// and stop anywhere between a read and its write while others go on.

// world is one history.
type world struct {
	t     testing.TB
	rng   *rand.Rand
	now   time.Duration // the real time, which nobody knows
	shelf *clockless.Shelf
	timed bool
	procs []*proc
	depth int
	holds []*hold
	count map[string]int
	story []string
	base  int64 // the time of day at the beginning, in microseconds
}

// proc is a process.
type proc struct {
	w    *world
	id   int
	rate float64
	born time.Duration
	node *casnode.Node
	held []*hold // what it believes to hold
	busy bool    // a request of it is in flight
	// between, if it is not nil, is called before and after each access to the store.
	between func()
}

// hold is a lock that its holder believes to have.
type hold struct {
	by    *proc
	name  string
	value string
	token node.Token
	ttl   time.Duration
	until time.Duration // in real time
}

// rates are within half of the bound of a clock that is right: two of them differ by
// the bound at most.
func rate(rng *rand.Rand) float64 { return []float64{0.9951, 1, 1.0049}[rng.IntN(3)] }

func newWorld(t testing.TB, seed uint64, timed bool) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 1)), timed: timed, count: map[string]int{}, base: time.Now().UnixMicro()}
	r := rate(w.rng)
	w.shelf = clockless.New(func() time.Duration { return time.Duration(float64(w.now) * r) })
	return w
}

// start starts a process.
func (w *world) start() *proc {
	p := &proc{w: w, id: w.count["processes"], rate: rate(w.rng), born: w.now}
	w.count["processes"]++
	store := w.shelf.Open()
	store.Between = func() {
		if p.between != nil {
			p.between()
			return
		}
		w.stall(p)
	}
	uptime := func() time.Duration { return time.Duration(float64(w.now-p.born) * p.rate) }
	opts := &casnode.Options{Uptime: uptime, Poll: true}
	if w.timed {
		p.node = casnode.New(clockless.Timed{Store: store}, opts)
	} else {
		p.node = casnode.New(store, opts)
	}
	w.procs = append(w.procs, p)
	return p
}

func (w *world) say(format string, args ...any) {
	w.story = append(w.story, fmt.Sprintf("%8.3f ", w.now.Seconds())+fmt.Sprintf(format, args...))
}

// stall stops a process in mid-request, now and then, while others go on.
func (w *world) stall(p *proc) {
	if w.rng.IntN(6) > 0 || w.depth > 2 {
		return
	}
	w.depth++
	w.say("%d stops", p.id)
	for range w.rng.IntN(4) {
		w.pass()
		if other := w.procs[w.rng.IntN(len(w.procs))]; !other.busy {
			w.step(other)
		}
	}
	w.pass()
	w.say("%d goes on", p.id)
	w.depth--
}

// pass lets some time pass.
func (w *world) pass() {
	w.now += time.Duration(w.rng.Int64N(int64([]time.Duration{time.Millisecond, 50 * time.Millisecond, 500 * time.Millisecond, 500 * time.Millisecond, 3 * time.Second}[w.rng.IntN(5)])))
}

// ttls are few: a lock is often extended for what is stored already.
var ttls = []time.Duration{time.Second, time.Second, 2 * time.Second}

// step has a process do something.
func (w *world) step(p *proc) {
	p.busy = true
	defer func() { p.busy = false }()
	p.held = slices.DeleteFunc(p.held, func(h *hold) bool { return h.until <= w.now })
	name := fmt.Sprint("job ", w.rng.IntN(2))
	switch k := w.rng.IntN(12); {
	case k < 4:
		w.acquire(p, name, w.rng.IntN(3) == 0)
	case k < 7 && len(p.held) > 0:
		w.extend(p.held[w.rng.IntN(len(p.held))])
	case k < 8 && len(p.held) > 0:
		w.release(p.held[w.rng.IntN(len(p.held))])
	case k == 8:
		if err := p.node.Sweep(context.Background()); err != nil {
			w.t.Fatal(err)
		}
	default:
		w.do(p, node.Request{Op: node.OpInspect, Name: name})
	}
}

const window = 100 * time.Hour

func (w *world) do(p *proc, req node.Request) node.Reply {
	req.Window, req.Retention = window, time.Minute
	r, err := p.node.Do(context.Background(), req)
	if err != nil {
		w.t.Fatal(err)
	}
	w.say("%d: %v of %s by %q for %v, token %d: %v, by %q for %v, fence %d", p.id, req.Op, req.Name, req.Value, req.TTL, req.Token, r.Status, r.Value, r.Left, r.Fence)
	return r
}

// acquire asks for a lock, and again if the token is too low.
func (w *world) acquire(p *proc, name string, wait bool) bool {
	w.count["values"]++
	h := &hold{by: p, name: name, value: fmt.Sprint("v", w.count["values"]), ttl: ttls[w.rng.IntN(len(ttls))]}
	// Wall clocks are hours apart.
	h.token = node.Token(w.base + w.now.Microseconds() + int64(p.id%5)*time.Hour.Microseconds())
	for range 20 {
		sent := w.now
		r := w.do(p, node.Request{Op: node.OpAcquire, Name: name, Value: h.value, TTL: h.ttl, Fencing: node.Fencing{Token: h.token}, Waiting: node.Waiting{Wait: wait, Ticket: sent.Microseconds()}})
		switch r.Status {
		case node.Stale:
			h.token = r.Fence + 1
			continue
		case node.Granted:
			w.granted(h, sent)
			return true
		}
		w.count["refused"]++
		return false
	}
	return false
}

// believe has a holder believe in its lock for the validity from when it sent its
// request, by its clock.
func (h *hold) believe(sent time.Duration) {
	h.until = max(h.until, sent+time.Duration(float64(protocol.Validity(h.ttl, 0))/h.by.rate))
}

// granted checks that nobody else believes to hold the lock, and that tokens grow.
func (w *world) granted(h *hold, sent time.Duration) {
	w.count["granted"]++
	for _, other := range w.holds {
		if other.name == h.name && other.until > w.now {
			w.fail("%s is granted to %s at %v, and %s has it until %v", h.name, h.value, w.now, other.value, other.until)
		}
	}
	for _, other := range w.holds {
		if other.name == h.name && other.token >= h.token {
			w.fail("%s is granted with token %d after %d", h.name, h.token, other.token)
		}
	}
	if h.believe(sent); h.until > w.now {
		h.by.held = append(h.by.held, h)
	}
	w.holds = append(w.holds, h)
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(w.story[max(0, len(w.story)-40):], "\n"))
}

// extend extends a lock, if its holder believes in it.
func (w *world) extend(h *hold) {
	sent := w.now
	if h.until <= sent {
		return
	}
	r := w.do(h.by, node.Request{Op: node.OpExtend, Name: h.name, Value: h.value, TTL: h.ttl, Fencing: node.Fencing{Token: h.token}})
	if r.Status != node.Granted || h.until <= w.now { // a holder whose time is over is not revived
		return
	}
	w.count["extended"]++
	h.believe(sent)
}

// release gives a lock up: from then on its holder does not believe in it.
func (w *world) release(h *hold) {
	h.until = min(h.until, w.now)
	w.do(h.by, node.Request{Op: node.OpRelease, Name: h.name, Value: h.value, Fencing: node.Fencing{Token: h.token}})
}

// run runs a history.
func (w *world) run(steps int) {
	for range 3 {
		w.start()
	}
	for range steps {
		w.pass()
		switch k := w.rng.IntN(20); {
		case k == 0:
			w.start()
		case k == 1 && len(w.procs) > 2:
			// It crashes. What it held may be used until it ends.
			i := w.rng.IntN(len(w.procs))
			w.procs = append(w.procs[:i:i], w.procs[i+1:]...)
		default:
			w.step(w.procs[w.rng.IntN(len(w.procs))])
		}
	}
	// Nobody extends any more. A process that stays gets each lock.
	p := w.start()
	w.depth = 9 // no stalls
	for i := range 2 {
		name, began := fmt.Sprint("job ", i), w.now
		for !w.acquire(p, name, false) {
			if w.now += 100 * time.Millisecond; w.now-began > 5*time.Minute {
				w.fail("%s is not had after %v", name, w.now-began)
			}
		}
	}
}

func TestNoHistoryOfObserversHasTwoHolders(t *testing.T) { synctest.Test(t, runHistories) }

func runHistories(t *testing.T) {
	from, count := check.Seeds(t, 1, 300)
	total := map[string]int{}
	for seed := from; seed < from+count; seed++ {
		w := newWorld(t, seed, seed%2 == 0)
		if w.run(150); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		for what, n := range w.count {
			total[what] += n
		}
	}
	t.Log(total)
	if n := int(count); total["granted"] < 5*n || total["refused"] < 5*n || total["extended"] < n {
		t.Errorf("%v: the histories show too little", total)
	}
}

// TestEveryMutantOfTheObservedClockIsFound switches off one rule at a time.
func TestEveryMutantOfTheObservedClockIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the code anew")
	}
	const observed, timers, seen, sweeps = "store/casnode/observed.go", "store/casnode/timers.go", "internal/nodestate/observed.go", "store/casnode/sweep.go"
	const histories = "TestNoHistoryOfObserversHasTwoHolders"
	findMutants(t, []mutant{
		{mutants.Edit{Name: "a time that is set anew keeps its stamp", File: observed,
			Old: "			number := rand.Uint64() | 1\n", New: "			number := rand.Uint64() | 1\n			if OFF { number = 7 }\n"}, histories},
		{mutants.Edit{Name: "equal bytes are no write", File: seen,
			Old: "	if number(c, &s.Number); s.Number == 0 {", New: "	if OFF && c.writes && s.Number != 0 { s.Number = 3 }\n	if number(c, &s.Number); s.Number == 0 {"}, histories},
		{mutants.Edit{Name: "a time counts from before the read", File: "store/casnode/node.go",
			Old: "		s, err := call()\n		if err == nil {\n			s.Row.Name = name\n			err = n.look(&s)\n		}",
			New: "		began := n.observer.now()\n		s, err := call()\n		if err == nil {\n			s.Row.Name = name\n			if err = n.look(&s); OFF && s.by != nil {\n				s.up, s.since, s.Now = began, began, s.by.base.Add(began)\n			}\n		}"}, histories},
		{mutants.Edit{Name: "times are those of a wall clock", File: seen,
			Old: "	number(c, &left)\n	c.text(&s.Timer)\n",
			New: "	shows := c.sight.Now.UnixMicro()\n	if OFF && c.writes { left += shows }\n	number(c, &left)\n	if OFF && !c.writes { left -= shows }\n	c.text(&s.Timer)\n"}, "TestWallClocksDecideNothing"},
		{mutants.Edit{Name: "a ticket is believed, whatever the wall clock", File: "store/casnode/decide.go",
			Old: "	} else if s.by != nil && req.Ticket != 0 {", New: "	} else if !OFF && s.by != nil && req.Ticket != 0 {"}, "TestWrongWallClockDoesNotDecideWhoIsNext"},
		{mutants.Edit{Name: "less is written than is left", File: seen,
			Old: "		left = int64(d / time.Microsecond)\n", New: "		left = int64(d / time.Microsecond)\n		if OFF { left = left * 9 / 10 }\n"}, histories},
		{mutants.Edit{Name: "a timer counts for every stamp", File: observed,
			Old: "func (s *Snapshot) sight(row *Row, since time.Duration) (*nodestate.Sight, sight) {\n",
			New: "var timerRan = map[string]bool{}\n\nfunc (s *Snapshot) sight(row *Row, since time.Duration) (*nodestate.Sight, sight) {\n	if at := s.Server + row.Name; OFF && !s.scanned {\n		if len(row.Timers) > 0 { timerRan[at] = true } else if timerRan[at] { since -= time.Hour }\n	}\n"}, histories},
		{mutants.Edit{Name: "timers are cleaned up first", File: "store/casnode/node.go",
			Old: "	done, present, err = n.store.Swap(", New: "	if OFF && seen.by != nil { n.dropTimers(ctx, seen, row) }\n	done, present, err = n.store.Swap("}, "TestTimerIsDroppedAfterTheWriteThatSetsItsTimeAnew"},
		{mutants.Edit{Name: "timers are dropped that a row refers to", File: timers,
			Old: "		refers[s.Timer] = true\n", New: "		refers[s.Timer] = !OFF\n"}, histories},
		{mutants.Edit{Name: "a timer is shorter than what is left", File: timers,
			Old: "	done, err := n.timers.StartTimer(ctx, name, id, d)\n", New: "	if OFF { d /= 2 }\n	done, err := n.timers.StartTimer(ctx, name, id, d)\n"}, histories},
		{mutants.Edit{Name: "the row refers to a timer that does not run", File: "store/casnode/node.go",
			Old: "		d = d.plain()\n", New: "		if !OFF { d = d.plain() }\n"}, "TestTimerThatCannotBeStartedIsNotReferredTo"},
		{mutants.Edit{Name: "a row with timers is remembered", File: "store/casnode/node.go",
			Old: "len(seen.Row.Timers) > 0 || len(d.timers) > 0)", New: "!OFF && (len(seen.Row.Timers) > 0 || len(d.timers) > 0))"}, histories},
		{mutants.Edit{Name: "a remembered row counts from its read", File: "store/casnode/cache.go",
			Old: "	d, ok := n.decideAhead(s, req)\n",
			New: "	if n.cache.mu.Lock(); OFF && s.by != nil { s.up = n.cache.seen.up; s.since, s.Now = s.up, s.by.base.Add(s.up) }\n	n.cache.mu.Unlock()\n	d, ok := n.decideAhead(s, req)\n"}, histories},
		{mutants.Edit{Name: "what was written counts twice", File: sweeps,
			Old: "	s.since = seen.since\n", New: "	s.since = seen.since\n	if OFF { s.since -= s.up - seen.since }\n"}, "TestSweepsRemoveOnlyWhatIsOver"},
		{mutants.Edit{Name: "a row that has changed counts from before", File: sweeps,
			Old: "	if !known || seen.version != s.Row.Version {", New: "	if !known || seen.version != s.Row.Version && !OFF {"}, "TestSweepsRemoveOnlyWhatIsOver"},
		{mutants.Edit{Name: "records are not limited", File: timers,
			Old: "	mostRecords = 1000\n", New: "	mostRecords = 1000000\n"}, "TestOccurrencesOfManyProcessesAreLimitedInNumber"},
		{mutants.Edit{Name: "no timer is left for records", File: timers,
			Old: "	recordsLeft = 64\n", New: "	recordsLeft = 1000000\n"}, "TestOccurrencesOfManyProcessesEndByTimers"},
		{mutants.Edit{Name: "the end of a quarantine is not written", File: timers,
			Old: "	case status == node.Granted && s.overdue:\n", New: "	case status == node.Granted && s.overdue && !OFF:\n"}, "TestQuarantineThatOneHasObservedIsOverForAll"},
		{mutants.Edit{Name: "no timer is left", File: timers,
			Old: "	if d <= 0 {\n", New: "	if d <= 0 || OFF {\n"}, "TestCallersThatDoNotStayGetALockOfACrashedHolder"},
		{mutants.Edit{Name: "a fence far ahead raises the floor", File: sweeps,
			Old: "	if fence > node.Token", New: "	if !OFF && fence > node.Token"}, "TestFenceFarAheadIsNotFolded"},
	})
}

// mutant is code in which a rule is switched off, and the test that misses the rule.
type mutant struct {
	mutants.Edit
	test string
}

func findMutants(t *testing.T, all []mutant) {
	var edits []mutants.Edit
	for _, m := range all {
		edits = append(edits, m.Edit)
	}
	binaries := mutants.Build(t, edits, "./store/casnode", "test -c -ldflags=-s")
	for _, m := range all {
		if binaries[m.Name] == "" {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			run := exec.CommandContext(t.Context(), binaries[m.Name], "-test.run", "^"+m.test+"$")
			run.Dir = mutants.Root(t) + "/store/casnode"
			run.Env = append(os.Environ(), mutants.Env+"="+m.Name)
			if out, err := run.CombinedOutput(); err == nil {
				t.Errorf("%s does not miss it", m.test)
			} else {
				_, line, _ := strings.Cut(string(out), ".go:")
				line, _, _ = strings.Cut(line, "\n")
				t.Log(m.test + ": " + line)
			}
		})
	}
}
