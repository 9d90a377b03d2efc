package redlatch

import (
	"container/heap"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
)

// ErrMaxHold is returned by Extend when the lease cannot be extended any further,
// since its deadline is at its MaxHold: it is valid until then. Together with
// ErrLost, it is the cause with which such a lease ends.
var ErrMaxHold = errors.New("redlatch: lock is at the end of its MaxHold")

// keeper keeps the time of a client's leases: one goroutine and one timer for
// all of them. Requests are sent on goroutines of their own, so that neither the
// clock nor another lease waits for a server that answers late.
type keeper struct {
	c *Client

	mu      sync.Mutex // taken after a claim's
	leases  leaseHeap
	running bool
	armed   time.Duration // when the loop looks next; 0 if it is parked
	closed  bool

	wake chan struct{} // the loop is to look now
	quit chan struct{}
}

// heartbeat is how often the loop looks though no timer of its own is due: after
// a suspension of the machine, timers fire late.
const heartbeat = 100 * time.Millisecond

func (k *keeper) init(c *Client) {
	k.c = c
	k.wake = make(chan struct{}, 1)
	k.quit = make(chan struct{})
}

// set has the lease be looked at then. Its claim's mutex is held.
func (k *keeper) set(l *Lease, at time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed || l.index >= 0 && l.next == at {
		return
	}
	l.next = at
	if l.index >= 0 {
		heap.Fix(&k.leases, l.index)
	} else {
		heap.Push(&k.leases, l)
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

// remove has a lease that is over not be looked at any more. Its claim's mutex
// is held.
func (k *keeper) remove(l *Lease) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l.index >= 0 {
		heap.Remove(&k.leases, l.index)
	}
}

// loop looks at leases when they are due.
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
		due, next, any := k.due()
		for _, l := range due {
			l.handle(protocol.Timer, onClock)
		}
		if len(due) > 0 {
			_, next, any = k.due()
		}
		if any {
			timer.Reset(next)
		} else {
			timer.Stop()
		}
	}
}

// due returns the leases that are due, and how long until it must look
// again; false if there is nothing to look at.
func (k *keeper) due() (due []*Lease, next time.Duration, any bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.c.clock.Uptime()
	for len(k.leases) > 0 && k.leases[0].next <= now {
		l := k.leases[0]
		due = append(due, l)
		l.next = now + heartbeat // until its claim says when
		heap.Fix(&k.leases, 0)
	}
	if len(k.leases) == 0 {
		if k.armed != 0 && k.armed <= now && len(due) == 0 {
			k.armed = 0 // parked: the next lease wakes us
			return due, 0, false
		}
		// One more heartbeat before parking, so that a caller who locks and
		// releases in a loop need not wake us each time.
		k.armed = now + heartbeat
		return due, heartbeat, true
	}
	k.armed = min(k.leases[0].next, now+heartbeat)
	return due, k.armed - now, true
}

// close ends every lease, releases all locks at once, and stops the loop.
func (k *keeper) close() {
	k.mu.Lock()
	k.closed = true
	close(k.quit)
	leases := append([]*Lease(nil), k.leases...)
	k.mu.Unlock()

	var all sync.WaitGroup
	for _, l := range leases {
		all.Go(func() {
			l.mu.Lock()
			l.soon = true
			l.mu.Unlock()
			if err := l.free(context.Background()); err != nil && !errors.Is(err, ErrLost) {
				k.c.log.Warn("redlatch: lock could not be released and will run out", "name", l.name, "err", err)
			}
		})
	}
	all.Wait()
}

// leaseHeap orders leases by when they are to be looked at.
type leaseHeap []*Lease

func (h leaseHeap) Len() int           { return len(h) }
func (h leaseHeap) Less(i, j int) bool { return h[i].next < h[j].next }
func (h leaseHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *leaseHeap) Push(x any) {
	l := x.(*Lease)
	l.index = len(*h)
	*h = append(*h, l)
}
func (h *leaseHeap) Pop() any {
	old := *h
	l := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	l.index = -1
	return l
}
