package redlatch

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrMaxHold is, together with ErrLost, the cause with which a lease ends that
// was extended for as long as its MaxHold allows.
var ErrMaxHold = errors.New("redlatch: lock was held for its MaxHold")

// keeper watches over a client's leases: one goroutine and one timer for all
// of them. It ends each at its deadline by the local clock alone; the
// extensions that move a deadline run on workers, so that a server which does
// not answer never holds up the clock.
type keeper struct {
	c *Client

	mu      sync.Mutex
	leases  leaseHeap
	running bool
	armed   time.Duration // when the loop looks next; 0 if it is parked
	closed  bool
	due     []*Lease // to be extended by the workers
	ended   []*Lease // to be told of once the mutex is free
	workers int

	wake chan struct{} // the loop is to look now
	quit chan struct{}
}

const (
	// heartbeat is how often the loop looks though no timer of its own is
	// due: after a suspension of the machine, timers fire late.
	heartbeat = 100 * time.Millisecond
	// maxWorkers is how many extensions run at once.
	maxWorkers = 64
)

func (k *keeper) init(c *Client) {
	k.c = c
	k.wake = make(chan struct{}, 1)
	k.quit = make(chan struct{})
}

// add puts a new lease under watch, after a round that began at start.
func (k *keeper) add(l *Lease, start time.Duration) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return ErrClosed
	}
	l.schedule(start)
	heap.Push(&k.leases, l)
	if !k.running {
		k.running = true
		go k.loop()
	} else {
		k.rearm(l.next)
	}
	return nil
}

// rearm makes the loop look at a time that is earlier than it would have.
func (k *keeper) rearm(at time.Duration) {
	if k.armed == 0 || at < k.armed {
		select {
		case k.wake <- struct{}{}:
		default:
		}
	}
}

// schedule sets when the lease is to be looked at after an extension that
// began at from: at a third of its time to live, and at its deadline.
func (l *Lease) schedule(from time.Duration) {
	l.next = l.deadline
	if !l.opts.NoKeepAlive && l.deadline < l.holdUntil() {
		l.next = min(l.next, from+l.req.TTL/3)
	}
}

// confirm moves the deadline after an extension that began at start and that a
// quorum confirmed. If the lease ended meanwhile, nothing moves: the release
// that its end has sent, or is still sending, takes back the extension too.
func (k *keeper) confirm(l *Lease, start, deadline time.Duration) error {
	k.mu.Lock()
	defer k.unlock()
	switch {
	case l.cause != nil:
		return l.cause
	case k.c.clock.Uptime() >= l.deadline:
		k.endLocked(l, ErrLost)
		return l.cause
	}
	l.failed = nil
	before := l.deadline
	l.deadline = max(before, min(deadline, l.holdUntil()))
	l.schedule(start)
	heap.Fix(&k.leases, l.index)
	k.rearm(l.next)
	if l.deadline == before && before == l.holdUntil() {
		return ErrMaxHold
	}
	return nil
}

// unlock frees the mutex, and then tells of the leases that ended under it.
func (k *keeper) unlock() { k.unlockAnd(func(tell func()) { tell() }) }

// unlockAnd is unlock with a say in how the telling is run.
func (k *keeper) unlockAnd(run func(tell func())) {
	ended := k.ended
	k.ended = nil
	counted := len(ended) > 0 && k.c.background.start()
	k.mu.Unlock()
	if len(ended) == 0 {
		return
	}
	run(func() {
		for _, l := range ended {
			k.tell(l)
		}
		if counted {
			k.c.background.end()
		}
	})
}

// tell says that a lease has ended to whoever wants to know. A logger or an
// observer may take its time.
func (k *keeper) tell(l *Lease) {
	if errors.Is(l.cause, ErrLost) {
		// Whatever still stands of it on some node is in the way of others.
		for _, m := range k.c.members {
			m.janitor.add(m, l.release())
		}
		k.c.log.Warn("redlatch: lock is lost", "name", l.name, "token", uint64(l.req.Token), "held", k.c.clock.Uptime()-l.acquired, "cause", l.cause)
	}
	if o, ok := k.c.opts.Observer.(LeaseObserver); ok {
		o.LeaseEnd(LeaseEnd{Name: l.name, Token: l.req.Token, Held: k.c.clock.Uptime() - l.acquired, Cause: l.cause})
	}
}

// end ends the lease with cause, unless it has ended before. It reports
// whether it was the first to do so, and the cause that counts.
func (k *keeper) end(l *Lease, cause error) (first bool, why error) {
	k.mu.Lock()
	defer k.unlock()
	if l.cause != nil {
		return false, l.cause
	}
	k.endLocked(l, cause)
	return true, l.cause
}

func (k *keeper) endLocked(l *Lease, cause error) {
	if errors.Is(cause, ErrLost) && l.deadline == l.holdUntil() && k.c.clock.Uptime() >= l.deadline {
		cause = l.lost(ErrMaxHold)
	} else if cause == ErrLost {
		cause = l.lost(nil)
	}
	l.cause = cause
	if l.index >= 0 {
		heap.Remove(&k.leases, l.index)
	}
	l.end(!errors.Is(cause, ErrDetached), errors.Is(cause, ErrReleased))
	l.cancel(cause)
	k.ended = append(k.ended, l)
}

// loop ends leases at their deadlines and sends them to be extended before.
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
		if d, ok := k.look(); ok {
			timer.Reset(d)
		} else {
			timer.Stop()
		}
	}
}

// look does what is due and returns how long until it must look again; false
// if there is nothing to look at.
func (k *keeper) look() (time.Duration, bool) {
	k.mu.Lock()
	defer k.unlockAnd(func(tell func()) { go tell() }) // nothing holds up the clock
	now := k.c.clock.Uptime()
	for len(k.leases) > 0 && k.leases[0].next <= now {
		l := k.leases[0]
		if l.deadline <= now {
			k.endLocked(l, ErrLost)
			continue
		}
		l.next = l.deadline
		heap.Fix(&k.leases, 0)
		k.due = append(k.due, l)
		if k.workers < maxWorkers {
			k.workers++
			go k.work()
		}
	}
	if len(k.leases) == 0 {
		if k.armed != 0 && k.armed <= now {
			k.armed = 0 // parked: the next lease wakes us
			return 0, false
		}
		// One more heartbeat before parking, so that a caller who locks and
		// releases in a loop need not wake us each time.
		k.armed = now + heartbeat
		return heartbeat, true
	}
	k.armed = min(k.leases[0].next, now+heartbeat)
	return k.armed - now, true
}

// work extends leases until none is due.
func (k *keeper) work() {
	for {
		k.mu.Lock()
		if len(k.due) == 0 || k.closed {
			k.due = nil
			k.workers--
			k.mu.Unlock()
			return
		}
		l := k.due[0]
		k.due = k.due[1:]
		ended := l.cause != nil
		k.mu.Unlock()
		if ended {
			continue
		}
		err := l.extend(context.Background())
		switch {
		case err == nil:
			k.relieve(l)
		case errors.Is(err, ErrNoQuorum) && !errors.Is(err, ErrLost):
			k.warn(l, err)
			k.retry(l)
		}
	}
}

// retry has the lease extended again soon: as many tries as fit before the
// deadline.
func (k *keeper) retry(l *Lease) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l.cause != nil || l.index < 0 {
		return
	}
	l.next = min(l.deadline, k.c.clock.Uptime()+max(l.req.TTL/30, time.Millisecond))
	heap.Fix(&k.leases, l.index)
	k.rearm(l.next)
}

// close ends every lease, releases the locks, and stops the loop.
func (k *keeper) close() {
	k.mu.Lock()
	k.closed = true
	close(k.quit)
	leases := append([]*Lease(nil), k.leases...)
	for _, l := range leases {
		k.endLocked(l, fmt.Errorf("%w: %w", ErrReleased, ErrClosed))
	}
	k.unlock()

	var all sync.WaitGroup
	slots := make(chan struct{}, maxWorkers)
	for _, l := range leases {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
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
