package runner

import (
	"container/heap"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
)

// keeper keeps the time of the claims that are held: one goroutine and one timer for
// all of them. Requests are sent on goroutines of their own, so that neither the
// clock nor another lease waits for a server that answers late.
type keeper struct {
	c *Cluster

	mu      sync.Mutex // taken after a claim's
	claims  claimHeap
	running bool
	armed   time.Duration // when the loop looks next; 0 if it is parked
	closed  bool

	wake chan struct{} // the loop is to look now
	quit chan struct{}
}

// heartbeat is how often the loop looks though no timer of its own is due: after
// a suspension of the machine, timers fire late.
const heartbeat = 100 * time.Millisecond

func (k *keeper) init(c *Cluster) {
	k.c = c
	k.wake = make(chan struct{}, 1)
	k.quit = make(chan struct{})
}

// set has the claim be looked at then. Its mutex is held.
func (k *keeper) set(cl *Claim, at time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed || cl.index >= 0 && k.claims[cl.index].next == at {
		return
	}
	if cl.index >= 0 {
		k.claims[cl.index].next = at
		heap.Fix(&k.claims, cl.index)
	} else {
		heap.Push(&k.claims, due{cl, at})
	}
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

// remove has a claim that is over not be looked at any more. Its mutex is held.
func (k *keeper) remove(cl *Claim) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if cl.index >= 0 {
		heap.Remove(&k.claims, cl.index)
	}
}

// loop looks at claims when they are due.
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

// due returns the claims that are due, and how long until it must look
// again; false if there is nothing to look at.
func (k *keeper) due() (late []*Claim, next time.Duration, any bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.c.clock.Uptime()
	for len(k.claims) > 0 && k.claims[0].next <= now {
		late = append(late, k.claims[0].claim)
		k.claims[0].next = now + heartbeat // until the claim says when
		heap.Fix(&k.claims, 0)
	}
	if len(k.claims) == 0 {
		if k.armed != 0 && k.armed <= now && len(late) == 0 {
			k.armed = 0 // parked: the next lease wakes us
			return late, 0, false
		}
		// One more heartbeat before parking, so that a caller who locks and
		// releases in a loop need not wake us each time.
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

// due is when a claim is to be looked at.
type due struct {
	claim *Claim
	next  time.Duration
}

// claimHeap orders claims by when they are to be looked at.
type claimHeap []due

func (h claimHeap) Len() int           { return len(h) }
func (h claimHeap) Less(i, j int) bool { return h[i].next < h[j].next }
func (h claimHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].claim.index, h[j].claim.index = i, j
}
func (h *claimHeap) Push(x any) {
	d := x.(due)
	d.claim.index = len(*h)
	*h = append(*h, d)
}
func (h *claimHeap) Pop() any {
	old := *h
	d := old[len(old)-1]
	old[len(old)-1] = due{}
	*h = old[:len(old)-1]
	d.claim.index = -1
	return d
}
