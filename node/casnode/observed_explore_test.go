package casnode_test

import (
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch/node"
)

// This file tries every sequence of a few steps, of two processes that stay and of others
// that come and go. A step that stops in the middle has all later steps happen
// meanwhile.

// explorer is a world with a holder whose clock is slow, so that it believes for long,
// and a rival whose clock is fast.
type explorer struct {
	*world
	holder, rival *proc
	hold          *hold
}

const exploreTTL = 10 * time.Second

func explore(t testing.TB, timed bool, steps []int) {
	w := calm(t, timed)
	e := &explorer{world: w, holder: w.start(), rival: w.start()}
	e.holder.rate, e.rival.rate = 0.9951, 1.0049
	e.take(e.holder)
	e.run(steps)
}

// take has a process ask for the lock.
func (e *explorer) take(p *proc) {
	e.count["values"]++
	h := &hold{by: p, name: "job", value: "v" + string(rune('a'+e.count["values"])), ttl: exploreTTL}
	sent := e.now
	if e.ask(p, node.OpAcquire, h.value, h.ttl).Status != node.Granted {
		return
	}
	h.token = node.Token(len(e.holds) + 1)
	e.granted(h, sent)
	e.hold = h
}

// extend has a process extend the lock of the last holder: its own, or one by a handle.
func (e *explorer) extend(p *proc) {
	h, sent := e.hold, e.now
	if h == nil || h.until <= sent {
		return
	}
	if e.ask(p, node.OpExtend, h.value, h.ttl).Status == node.Granted && e.now < h.until {
		h.believe(sent)
	}
}

// stopped executes a step that stops before its n-th access to the store, and the rest
// meanwhile.
func (e *explorer) stopped(p *proc, n int, step func(), rest []int) {
	at := 0
	p.between = func() {
		if at++; at == n {
			p.between = nil
			e.run(rest)
		}
	}
	step()
	if p.between != nil { // it did not come that far
		p.between = nil
		e.run(rest)
	}
}

// exploreSteps is how many kinds of steps there are.
const exploreSteps = 11

func (e *explorer) run(steps []int) {
	for i, s := range steps {
		switch s {
		case 0:
			e.now += exploreTTL * 45 / 100
		case 1:
			e.now += exploreTTL * 70 / 100
		case 2:
			e.take(e.rival)
		case 3:
			e.ask(e.rival, node.OpInspect, "", 0)
		case 4:
			e.extend(e.holder)
		case 5:
			e.extend(e.start()) // equal bytes
		case 6:
			e.take(e.start()) // it leaves at once, and a timer with it
		case 7:
			if h := e.hold; h != nil {
				h.until = min(h.until, e.now)
				e.ask(h.by, node.OpRelease, h.value, 0)
			}
		case 8:
			e.stopped(e.rival, 1, func() { e.take(e.rival) }, steps[i+1:]) // before the read
			return
		case 9:
			e.stopped(e.rival, 3, func() { e.take(e.rival) }, steps[i+1:]) // before the write
			return
		case 10:
			e.stopped(e.holder, 3, func() { e.extend(e.holder) }, steps[i+1:])
			return
		}
	}
}

// A request that is refused waits a moment before it tries again: that takes no time
// here.
func TestNoSequenceOfObserversHasTwoHolders(t *testing.T) { synctest.Test(t, exploreAll) }

func exploreAll(t *testing.T) {
	depth := 4
	if os.Getenv("REDLATCH_EXPLORE") == "all" {
		depth = 6
	}
	if testing.Short() {
		depth = 3
	}
	steps, n := make([]int, depth), 0
	for {
		// Only a step in which somebody takes the lock can show that it is wrong.
		if slices.Contains([]int{2, 6, 8, 9}, steps[depth-1]) {
			explore(t, false, steps)
			explore(t, true, steps)
			n++
		}
		i := depth - 1
		for ; i >= 0 && steps[i] == exploreSteps-1; i-- {
			steps[i] = 0
		}
		if i < 0 {
			break
		}
		steps[i]++
	}
	t.Logf("%d sequences of %d steps, with and without timers", n, depth)
}
