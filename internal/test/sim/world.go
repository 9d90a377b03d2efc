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
	"github.com/redlatch/redlatch/internal/clientaccess"
	"github.com/redlatch/redlatch/node"
)

// Operations is the least number of operations of a history: requests for a
// lock, extensions, releases.
const Operations = 50

// World is a running history.
type World struct {
	plan   *Plan
	dice   dice
	start  time.Time
	events sync.Mutex // held by the event that runs
	ctx    context.Context
	end    context.CancelFunc
	ops    atomic.Int64

	hosts   []*host
	clients []*client
	judge   *judge

	mu     sync.Mutex         // guards the following, and what changes in hosts, clients and links
	owners map[string]*client // of values
	trace  bool
	lines  []string
}

// Outcome is the result of a history.
type Outcome struct {
	// Violation is the first broken promise; "" if none was.
	Violation  string
	Operations int64
	Locks      int
	Overlaps   int // two leases valid at once that must not be, where no promise forbids it
	// Seen counts what happened that is wanted.
	Seen map[string]int
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
	w := &World{plan: p, dice: dice(mix(p.Seed ^ 0x5eed)), start: time.Now(), owners: map[string]*client{}, trace: trace}
	w.judge = &judge{w: w, all: map[int][]*held{}, free: map[int]time.Duration{}, out: Outcome{Seen: map[string]int{}}}
	w.ctx, w.end = context.WithCancel(context.Background())
	for i := range p.Nodes {
		w.hosts = append(w.hosts, newHost(w, i))
	}
	for i := range p.Clients {
		w.clients = append(w.clients, newClient(w, i))
	}
	return w
}

// client is a client, with its clock, its links and the lives of its callers.
type client struct {
	*redlatch.Client
	w      *World
	number int
	clock  *clientClock
	links  []*link // by server
	lives  []life
	paused time.Duration // until when
	dead   bool
}

// life is a caller's; it ends with its client's, or with the world.
type life struct {
	context.Context
	end context.CancelFunc
}

func newClient(w *World, i int) *client {
	p := w.plan
	clock := &clientClock{ticker: newTicker(w.start, p.ClientClocks[i], w.unevenUntil()), dice: dice(w.dice.roll(1000, uint64(i)))}
	c := &client{w: w, number: i, clock: clock}
	var nodes []node.Node
	for _, h := range w.hosts {
		l := &link{w: w, client: c, host: h, cut: make(chan struct{}), last: map[string]chan struct{}{}}
		c.links = append(c.links, l)
		if h.shelf != nil {
			nodes = append(nodes, newObserved(l))
		} else if p.Guard {
			nodes = append(nodes, guardedLink{l})
		} else {
			nodes = append(nodes, l)
		}
	}
	opts := redlatch.Options{
		TTL: p.TTL, Cluster: redlatch.Cluster{MaxTTL: p.MaxTTL}, FenceRetention: 3*p.Window + p.Window/8,
		NodeTimeout: nodeTimeout, Label: "sim",
	}
	clientaccess.SetClock(&opts, clock)
	clientaccess.SetWindow(&opts, p.Window)
	if p.Guard {
		opts.Guard = redlatch.GuardOn
	} else if p.Observed > 0 {
		opts.Guard = redlatch.GuardOff
	}
	var err error
	if c.Client, err = redlatch.New(nodes, &opts); err != nil {
		panic(err)
	}
	for range p.Callers {
		ctx, end := context.WithCancel(context.Background())
		c.lives = append(c.lives, life{ctx, end})
	}
	return c
}

// kill ends the lives of a client's callers, one after the other: events at the
// same moment have no fixed order.
func (c *client) kill() {
	for n, life := range c.lives {
		c.w.after(c.w.jitter(uint64(c.number)<<8|uint64(n)), life.end)
	}
}

// pausedFor is how long a client's process is still paused.
func (c *client) pausedFor(now time.Duration) (d time.Duration) {
	c.w.locked(func() { d = max(0, c.paused-now) })
	return d
}

func (c *client) isDead() (dead bool) {
	c.w.locked(func() { dead = c.dead })
	return dead
}

// locked calls f with the world's mutex held.
func (w *World) locked(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
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

// ownerOf returns the client that a value is from; nil if that is unknown.
func (w *World) ownerOf(value string) (c *client) {
	w.locked(func() { c = w.owners[value] })
	return c
}

// note adds a line to the trace.
func (w *World) note(format string, args ...any) {
	if w.trace {
		w.locked(func() {
			w.lines = append(w.lines, fmt.Sprintf("%12v  ", w.now())+fmt.Sprintf(format, args...))
		})
	}
}

// run runs the history to its end.
func (w *World) run() Outcome {
	var all sync.WaitGroup
	for _, c := range w.clients {
		for caller := range w.plan.Callers {
			all.Go(func() { w.live(c, caller) })
		}
	}
	for i, f := range w.plan.Faults {
		w.schedule(f, uint64(i))
	}
	if strings.HasPrefix(string(w.plan.Climate), "beyond") {
		// About right again: the promise that every caller is served depends on it.
		w.after(w.plan.Mend, func() {
			for i, h := range w.hosts {
				h.clock.correct(w.plan.NodeClocks[i].Offset)
			}
		})
	}
	served := make(chan struct{})
	go func() {
		all.Wait()
		close(served)
	}()
	// Every quarantine, and every lock of a dead holder, is over by then.
	patience := w.plan.Mend + 2*(max(w.plan.MaxTTL, 3*w.plan.Window)+w.plan.MaxTTL/10+w.plan.TTL) + 30*time.Second
	select {
	case <-served:
		w.quiet()
	case <-time.After(patience):
		held := ""
		w.eachHolder(func(h *host, holder node.Holder) {
			held += fmt.Sprintf(" %s: %.8s (%v)", h.server.name, holder.Value, holder.Share)
		})
		w.fail("somebody is not served %v after the last fault; held by %s", patience-w.plan.Mend, held)
	}
	w.stop()
	<-served
	for _, c := range w.clients {
		c.Close()
	}
	o := w.judge.outcome()
	o.Operations = w.ops.Load()
	w.locked(func() { o.Trace = w.lines })
	return o
}

// stop ends the history.
func (w *World) stop() {
	w.end()
	for _, c := range w.clients {
		c.kill()
	}
}

// unevenUntil is when clocks stop running at rates that no assumption allows.
func (w *World) unevenUntil() time.Duration {
	if w.plan.Climate == BeyondRates {
		return w.plan.Mend
	}
	return 0
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
	w.eachHolder(func(h *host, holder node.Holder) {
		if c := w.ownerOf(holder.Value); !h.revived && (c == nil || !c.isDead()) {
			w.fail("%s has a ghost: %s, %v", h.server.name, holder.Value, holder.Share)
		}
	})
}

func nameOf(n int) string { return "job" + strconv.Itoa(n) }

// eachHolder calls f with every holder of a name on a host.
func (w *World) eachHolder(f func(*host, node.Holder)) {
	for _, h := range w.hosts {
		for n := range w.plan.Names {
			for _, holder := range h.holders(nameOf(n)) {
				f(h, holder)
			}
		}
	}
}

// fail records a broken promise, and ends the history.
func (w *World) fail(format string, args ...any) {
	w.judge.fail(fmt.Sprintf("after %v: ", w.now()) + fmt.Sprintf(format, args...))
	w.stop()
}
