package casnode

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/redlatch/redlatch/internal/nodestate"
	"github.com/redlatch/redlatch/node"
)

// This file is the queue of a store that keeps it in places: see Placer. The rules are
// those of nodestate, which sees the first places. What this process has in it is in
// places.go.
//
//	who comes       puts a place, and reads what is there after that
//	who is first    takes the lock, in a write that removes its place
//	who releases    keeps the lock for the first place, and wakes that waiter. The wake
//	                has the row, so that the waiter writes without a read before it
//	who leaves      removes its place, and reads. What was kept for it is passed on
//
// A release goes by the places that its holder saw last. So after each write the places
// are looked at, and if the name is free for a waiter that it is not kept for, it is
// passed on.

// live has the process show that it lives, if it has not for a while. If it has missed
// that, its places may be gone, and are put anew.
func (q *places) live(ctx context.Context) error {
	now := q.uptime()
	since := func() time.Duration {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.lived == 0 {
			return PlaceLease
		}
		return now - q.lived
	}
	if since() < PlaceLease/3 {
		return nil
	}
	if since() < PlaceLease/2 {
		select {
		case q.renewing <- struct{}{}:
		default:
			return nil // another caller does
		}
	} else {
		select {
		case q.renewing <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer func() { <-q.renewing }()
	if since() < PlaceLease/3 {
		return nil
	}
	lived, err := q.store.Live(ctx, q.process)
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lived = max(now, 1)
	if !lived {
		for _, p := range q.own {
			p.stored = false
		}
	}
	return nil
}

// put puts the place of a request, and returns what is there after that.
func (n *Node) put(ctx context.Context, req node.Request) (s Snapshot, err error) {
	w := waiter{req.Name, req.Value}
	var p Place
	s, err = n.present(ctx, req.Name, func() (Snapshot, error) {
		if err := n.queue.live(ctx); err != nil {
			return s, err
		}
		var again bool
		p, again = n.queue.expect(req)
		return n.queue.store.Put(ctx, p, again)
	})
	if rank := s.Rank; err == nil && len(s.Places) == 0 && (rank <= FirstPlaces || n.cache.timed(s.Row)) {
		s, err = n.read(ctx, req.Name)
		s.Rank = rank
	}
	if p.Name != "" && !n.queue.has(w) { // it has left meanwhile, and the place may have come after that
		go n.withdraw(ctx, p)
	}
	if p.Name != "" && err != nil && ctx.Err() == context.Canceled {
		// The caller left in mid-request: the store may put the place after it was removed.
		time.AfterFunc(lateBy, func() { n.withdraw(ctx, p) })
	}
	if err == nil {
		n.queue.mu.Lock()
		if p := n.queue.own[w]; p != nil && p.Name != "" {
			p.stored, p.rank = true, s.Rank
		}
		n.queue.mu.Unlock()
	}
	return s, err
}

// lateBy is how much later than its caller a store may put a place.
const lateBy = time.Second

// withdraw removes a place that may have come late, and passes on what is kept for it.
func (n *Node) withdraw(ctx context.Context, p Place) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forsakeLimit)
	defer cancel()
	if s, err := n.leave(ctx, p); err == nil && !n.pass(ctx, s) {
		n.passOn(ctx, p.Name)
	}
}

// leave removes the place of a waiter of this process, and returns what is there after
// that.
func (n *Node) leave(ctx context.Context, p Place) (Snapshot, error) {
	p.Process = n.queue.process
	return n.present(ctx, p.Name, func() (Snapshot, error) { return n.queue.store.Drop(ctx, p) })
}

// Passes reports whether who leaves a place may have something to pass on. Otherwise, as
// another one holds the whole name, Drop need not look at the places.
func (s *Snapshot) Passes(p Place) bool {
	e, err := s.entry()
	w, damaged := p.waiter()
	return err != nil || damaged != nil || e.Queue.Head == w.Value ||
		!slices.ContainsFunc(e.Holders, func(h node.Holder) bool { return h.Mode == node.Exclusive && h.Value != w.Value })
}

// beside has the entry of a snapshot see the first places. Where nobody can be notified,
// the first waiter asks all the time, and who leaves passes nothing on.
func (n *Node) beside(s *Snapshot, e *nodestate.Entry, req node.Request) {
	first := waiters(s.Places)
	fresh := n.ears.store == nil && req.Op == node.OpRelease && e.Holders.Of(req.Value, req.Share) < 0 ||
		req.Wait && req.Op == node.OpAcquire && !e.Kept(first) && n.queue.freshly(s.Row)
	e.Queue.Beside(cmp.Or(s.begins, s.Now), first, len(s.Places) >= FirstPlaces || s.Rank > len(s.Places), fresh)
}

// refuses reports whether a caller that waits has to ask again.
func refuses(s node.Status) bool {
	return s == node.Held || s == node.Foreign || s == node.Reserved
}

// placed adds to a decision what it comes to for the place of the request.
func (n *Node) placed(d *decision, req node.Request) {
	p, _ := n.queue.find(waiter{req.Name, req.Value})
	switch {
	case p.Name == "" || req.Op != node.OpAcquire:
	case d.reply.Status == node.Granted:
		d.drop = &p.Place
	case d.entry.Queue.Late():
		d.reply.Rank = 0
	case d.reply.Rank == 0 && req.Wait && refuses(d.reply.Status):
		d.reply.Rank = p.rank
	}
}

// looks reports whether the places after the write are needed: by a holder that is in a
// crowd, or because others may have the name now. Where nobody else can, those from
// before it are near enough.
func (d *decision) looks() (look, near bool) {
	if d.entry == nil {
		return false, false
	}
	holders := d.entry.Holders
	near = len(holders) > 0 && holders[0].Mode == node.Exclusive && !d.reply.Confirmed
	return d.drop != nil || !near, near
}

// follow does what is left to do after a decision was carried out. present has the
// places after it.
func (n *Node) follow(ctx context.Context, req node.Request, d *decision, present Snapshot) {
	w := waiter{req.Name, req.Value}
	if d.entry == nil {
		return
	}
	if d.row != nil && n.ears.store != nil && !d.entry.Kept(waiters(present.Places)) {
		n.passOn(ctx, req.Name)
	}
	if gone := d.entry.Queue.Evicts(); gone != nil {
		if gone.Process != n.queue.process {
			_ = n.queue.store.Evict(ctx, req.Name, gone.Process) // if this fails, another process does it
		} else if p, _ := n.queue.find(waiter{req.Name, gone.Value}); p.Name != "" {
			_, _ = n.leave(ctx, p.Place)
		}
	}
	switch {
	case req.Op == node.OpRelease:
		n.queue.hasLeft(w, req.NoRepair > 0)
		if len(present.Places) > 0 {
			n.cache.crowd(req.Name)
		}
	case req.Op == node.OpAcquire && d.reply.Status == node.Granted:
		n.queue.hasLock(w)
	case d.entry.Queue.Late() && n.queue.has(w):
		_, _ = n.leave(ctx, n.queue.leaving(w))
		n.queue.hasLeft(w, false)
	}
	if d.reply.Confirmed && present.Server != "" {
		d.reply.Next = 0
		for _, p := range present.Places {
			if d.reply.Next == 0 || p.Ticket < d.reply.Next {
				d.reply.Next = p.Ticket
			}
		}
	}
}

// mostPasses is how often somebody tries to pass a name on. Others will look, too.
const mostPasses = 10

// passOn keeps a name for its first waiter, if it is free and not kept for one.
func (n *Node) passOn(ctx context.Context, name string) {
	for range mostPasses {
		s, err := n.read(ctx, name)
		if err != nil || n.pass(ctx, s) {
			return
		}
	}
}

// pass does so once, and reports whether there is nothing left to do.
func (n *Node) pass(ctx context.Context, s Snapshot) bool {
	e, err := s.entry()
	first := waiters(s.Places)
	if err != nil {
		return true
	}
	e.Queue.Beside(s.Now, first, len(s.Places) >= FirstPlaces, false)
	d := decision{wakes: e.Pass(s.Now, n.ears.store != nil), entry: &e}
	if len(d.wakes) == 0 {
		return true
	}
	d = s.writes(d, true, s.Row.Name, &e)
	done, present, err := n.swap(ctx, s, node.Request{Name: s.Row.Name}, d, false)
	return err != nil || done && e.Kept(waiters(present.Places))
}

// forsakeLimit is how long it may take to pass on what nobody waits for.
const forsakeLimit = 5 * time.Second

// forsaken passes on what is kept for a waiter who has left, and removes its place if it is
// still there: a Put may have come late.
func (n *Node) forsaken(w waiter) {
	ctx, cancel := context.WithTimeout(context.Background(), forsakeLimit)
	defer cancel()
	s, err := n.read(ctx, w.name)
	if err != nil {
		return
	}
	for _, p := range s.Places {
		if v, err := p.waiter(); err == nil && v.Value == w.value && p.Process == n.queue.process && !n.queue.has(w) {
			n.withdraw(ctx, p)
			return
		}
	}
	n.passOn(ctx, w.name)
}
