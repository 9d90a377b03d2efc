package runner

import (
	"container/heap"
	"math"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
)

// keeper runs the timers of the claims that are held: one goroutine and one
// timer for all of them. Requests are sent on other goroutines, so that a slow
// server delays neither the timer nor another lease.
type keeper struct {
	c *Cluster

	mu      sync.Mutex // locked after a claim's mutex
	claims  claimHeap
	running bool
	armed   time.Duration // when the loop runs next; 0 if it is parked
	closed  bool

	wake chan struct{} // makes the loop run now
	quit chan struct{}
}

// heartbeat is how often the loop runs although no timer is due: timers fire
// late after a suspension of the machine.
const heartbeat = 100 * time.Millisecond

func (k *keeper) init(c *Cluster) {
	k.c = c
	k.wake = make(chan struct{}, 1)
	k.quit = make(chan struct{})
}

// set schedules the claim for at. Its mutex is held.
func (k *keeper) set(cl *Claim, at time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed || cl.index >= 0 && k.claims[cl.index].next == at {
		return
	}
	if cl.index < 0 {
		heap.Push(&k.claims, cl)
	}
	k.claims[cl.index].next = at
	heap.Fix(&k.claims, int(cl.index))
	if !k.running {
		k.running = true
		go k.loop()
		return
	}
	if k.armed == 0 || at < k.armed {
		select {
		case k.wake <- struct{}{}:
		default:
		}
	}
}

// remove removes a claim that is over from the schedule. Its mutex is held.
func (k *keeper) remove(cl *Claim) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if cl.index >= 0 {
		heap.Remove(&k.claims, int(cl.index))
	}
}

// loop handles claims when they are due.
func (k *keeper) loop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-k.wake:
		case <-k.quit:
			return
		}
		late, next, any := k.due()
		for _, cl := range late {
			cl.handle(protocol.Timer, onClock)
		}
		if len(late) > 0 {
			_, next, any = k.due()
		}
		if any {
			timer.Reset(next)
		} else {
			timer.Stop()
		}
	}
}

// due returns the claims that are due, and how long until the loop must run
// again; false if there are no claims.
func (k *keeper) due() (late []*Claim, next time.Duration, any bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.c.clock.Uptime()
	for len(k.claims) > 0 && k.claims[0].next <= now {
		late = append(late, k.claims[0].claim)
		k.claims[0].next = now + heartbeat // until the claim sets its next time
		heap.Fix(&k.claims, 0)
	}
	if len(k.claims) == 0 {
		if k.armed != 0 && k.armed <= now && len(late) == 0 {
			k.armed = 0 // parked: the next lease wakes the loop
			return late, 0, false
		}
		// One more heartbeat before parking, so that a caller that locks and
		// releases in a loop does not wake it each time.
		k.armed = now + heartbeat
		return late, heartbeat, true
	}
	k.armed = min(k.claims[0].next, now+heartbeat)
	return late, k.armed - now, true
}

// close stops the loop, and returns the claims that are held.
func (k *keeper) close() []*Claim {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	close(k.quit)
	held := make([]*Claim, len(k.claims))
	for i, d := range k.claims {
		held[i] = d.claim
	}
	return held
}

// due is when a claim is due.
type due struct {
	claim *Claim
	next  time.Duration
}

// claimHeap orders claims by when they are due. What heap.Push and heap.Remove
// pass is a pointer or nil: anything else would be allocated.
type claimHeap []due

func (h claimHeap) Len() int           { return len(h) }
func (h claimHeap) Less(i, j int) bool { return h[i].next < h[j].next }
func (h claimHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].claim.index, h[j].claim.index = int32(i), int32(j)
}
func (h *claimHeap) Push(x any) {
	cl := x.(*Claim)
	cl.index = int32(len(*h))
	*h = append(*h, due{cl, math.MaxInt64}) // the last, until its time is set
}
func (h *claimHeap) Pop() any {
	old := *h
	old[len(old)-1].claim.index = -1
	old[len(old)-1] = due{}
	*h = old[:len(old)-1]
	return nil
}
