package sim

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/inside"
	"github.com/redlatch/redlatch/node"
)

// Operations is the least number of operations of a history: requests for a
// lock, extensions, releases.
const Operations = 50

// World is a running history.
type World struct {
	plan  *Plan
	dice  dice
	start time.Time

	events  sync.Mutex // held by the event that runs
	hosts   []*host
	links   [][]*link // by client, then by server
	clocks  []*clientClock
	clients []*redlatch.Client
	judge   *judge
	ctx     context.Context
	end     context.CancelFunc
	ops     atomic.Int64
	locks   atomic.Int64

	mu     sync.Mutex
	values map[string]int // the owners of values
	paused []time.Duration
	dead   []bool
	lives  [][]life
	digest uint64
	lines  []string
	keep   bool
}

// Outcome is the result of a history.
type Outcome struct {
	// Violation is the first broken promise; "" if none was.
	Violation  string
	Operations int64
	Locks      int64
	Overlaps   int // two leases valid at once that must not be, where no promise forbids it
	// Seen counts what happened that is wanted.
	Seen map[string]int
	// Digest is a number that two histories share only if the same happened.
	Digest uint64
	// Trace is what happened, if it was asked for.
	Trace []string
}

// Run runs the history of a plan, in virtual time.
func Run(t *testing.T, p *Plan, trace bool) Outcome {
	var o Outcome
	synctest.Test(t, func(*testing.T) { o = newWorld(p, trace).run() })
	return o
}

func newWorld(p *Plan, trace bool) *World {
	w := &World{
		plan: p, dice: dice(mix(p.Seed ^ 0x5eed)), start: time.Now(), keep: trace,
		values: map[string]int{}, paused: make([]time.Duration, p.Clients), dead: make([]bool, p.Clients),
	}
	w.judge = newJudge(w)
	w.ctx, w.end = context.WithCancel(context.Background())
	for i := range p.Nodes {
		w.hosts = append(w.hosts, newHost(w, i))
	}
	for i := range p.Clients {
		w.addClient(i)
	}
	return w
}

func (w *World) addClient(i int) {
	p := w.plan
	clock := &clientClock{ticker: newTicker(w.start, p.ClientClocks[i], w.unevenUntil()), dice: dice(w.dice.roll(1000, uint64(i)))}
	var nodes []node.Node
	var links []*link
	for j, h := range w.hosts {
		l := &link{w: w, client: i, server: j, name: "node " + strconv.Itoa(j), view: h.server, cut: make(chan struct{})}
		links = append(links, l)
		if p.Guard {
			nodes = append(nodes, guardedLink{l})
		} else {
			nodes = append(nodes, l)
		}
	}
	opts := redlatch.Options{
		TTL: p.TTL, Cluster: redlatch.Cluster{MaxTTL: p.MaxTTL, TokenWindow: p.Window}, FenceRetention: 3*p.Window + p.Window/8,
		NodeTimeout: nodeTimeout, Label: "sim",
	}
	inside.SetClock(&opts, clock)
	if p.Guard {
		opts.Guard = redlatch.GuardOn
	}
	c, err := redlatch.New(nodes, &opts)
	if err != nil {
		panic(err)
	}
	w.lives = append(w.lives, make([]life, p.Callers))
	for n := range w.lives[i] {
		w.lives[i][n].Context, w.lives[i][n].end = context.WithCancel(context.Background())
	}
	w.clocks, w.links, w.clients = append(w.clocks, clock), append(w.links, links), append(w.clients, c)
}

// life is a caller's; it ends with its client's, or with the world.
type life struct {
	context.Context
	end context.CancelFunc
}

// kill ends the lives of a client's callers, one after the other: events at the
// same moment have no fixed order.
func (w *World) kill(client int) {
	for n := range w.plan.Callers {
		w.after(w.jitter(uint64(client)<<8|uint64(n)), w.lives[client][n].end)
	}
}

func (w *World) now() time.Duration { return time.Since(w.start) }

// after runs f after a while. One event runs at a time.
func (w *World) after(d time.Duration, f func()) {
	time.AfterFunc(d, func() {
		w.events.Lock()
		defer w.events.Unlock()
		f()
	})
}

// trip is how long a message is in flight.
func (w *World) trip(n uint64) time.Duration {
	return w.plan.Road/2 + below(mix(n), w.plan.Road) + 1
}

// jitter separates events that would happen at the same moment.
func (w *World) jitter(n uint64) time.Duration { return 1 + below(mix(n), 20*time.Microsecond) }

// own records the owner of a value.
func (w *World) own(value string, client int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.values[value]; !known {
		w.values[value] = client
	}
}

// ownerOf returns the client that a value is from.
func (w *World) ownerOf(value string) (client int, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	client, known = w.values[value]
	return client, known
}

// pausedFor is how long a client's process is still paused.
func (w *World) pausedFor(client int, now time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(0, w.paused[client]-now)
}

func (w *World) isDead(client int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dead[client]
}

// run runs the history to its end.
func (w *World) run() Outcome {
	var all sync.WaitGroup
	for client := range w.plan.Clients {
		for caller := range w.plan.Callers {
			all.Go(func() { w.live(client, caller) })
		}
	}
	for i, f := range w.plan.Faults {
		w.schedule(f, uint64(i))
	}
	if strings.HasPrefix(string(w.plan.Climate), "beyond") {
		w.after(w.plan.Mend, w.correctClocks)
	}
	served := make(chan struct{})
	go func() {
		all.Wait()
		close(served)
	}()
	// Every quarantine, and every lock of a dead holder, is over by then.
	patience := w.plan.Mend + 2*quarantineAndMore(w.plan) + 30*time.Second
	select {
	case <-served:
		w.quiet()
	case <-time.After(patience):
		w.fail("somebody is not served %v after the last fault; held by %s", patience-w.plan.Mend, w.holders())
	}
	w.end()
	for client := range w.clients {
		w.kill(client)
	}
	<-served
	for _, c := range w.clients {
		c.Close()
	}
	o := w.judge.outcome()
	o.Operations, o.Locks = w.ops.Load(), w.locks.Load()
	w.mu.Lock()
	o.Digest, o.Trace = w.digest, w.lines
	w.mu.Unlock()
	return o
}

// unevenUntil is when clocks stop running at rates that no assumption allows.
func (w *World) unevenUntil() time.Duration {
	if w.plan.Climate == BeyondRates {
		return w.plan.Mend
	}
	return 0
}

// correctClocks sets the nodes' clocks about right again: the promise that
// every caller is served depends on it.
func (w *World) correctClocks() {
	for i, h := range w.hosts {
		h.clock.correct(w.plan.NodeClocks[i].Offset)
	}
}

func quarantineAndMore(p *Plan) time.Duration {
	return max(p.MaxTTL, 3*p.Window) + p.MaxTTL/10 + p.TTL
}

// quiet waits until everything in flight has arrived, and looks for what was
// left behind.
func (w *World) quiet() {
	time.Sleep(veryLate + 3*time.Second)
	// If fences are forgotten or nodes' clocks are set, a late request may leave a
	// key; and short ones are gone anyway.
	if w.plan.Climate == BeyondMemory || w.plan.Climate == BeyondSteps || w.plan.TTL < veryLate+3*time.Second {
		return
	}
	for _, h := range w.hosts {
		for n := range w.plan.Names {
			for _, holder := range h.server.holders(nameOf(n)) {
				client, known := w.ownerOf(holder.Value)
				if h.revived || known && w.isDead(client) {
					continue
				}
				w.fail("%s has a ghost of client %d: %s, %v", h.server.name, client, holder.Value, holder.Share)
			}
		}
	}
}

func nameOf(n int) string { return "job" + strconv.Itoa(n) }

func (w *World) holders() (s string) {
	for _, h := range w.hosts {
		for n := range w.plan.Names {
			for _, holder := range h.server.holders(nameOf(n)) {
				s += fmt.Sprintf(" %s: %.8s (%v)", h.server.name, holder.Value, holder.Share)
			}
		}
	}
	return s
}

// fail records a broken promise, and ends the history.
func (w *World) fail(format string, args ...any) {
	w.judge.fail(fmt.Sprintf("after %v: ", w.now()) + fmt.Sprintf(format, args...))
	w.end()
	for client := range w.clients {
		w.kill(client)
	}
}
