package sim

import (
	"sync"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/node"
)

// judge compares every lease with all others.
type judge struct {
	w    *World
	mu   sync.Mutex
	all  []*held
	free map[int]time.Duration // since when a name has been free
	out  Outcome
}

// calmWait is how long a hand-over may take if nothing goes wrong and messages
// take 6 ms at most. The longest seen in 20,000 histories was 60 ms; a caller
// that was not notified asks again after 400.
const calmWait = 200 * time.Millisecond

// held is a lease that was acquired.
type held struct {
	*redlatch.Lease
	name   int
	client int
	had    time.Duration
	over   bool       // it was observed to have ended
	asked  node.Share // what it was acquired as
	share  node.Share // what it is: a reader since a downgrade
}

func newJudge(w *World) *judge {
	return &judge{w: w, free: map[int]time.Duration{}, out: Outcome{Seen: map[string]int{}}}
}

func (j *judge) fail(what string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.out.Violation == "" {
		j.out.Violation = what
		j.w.note("VIOLATION %s", what)
	}
}

func (j *judge) outcome() Outcome {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.out.Locks = len(j.all)
	return j.out
}

// excludes reports whether two leases at once are a violation.
func (j *judge) excludes() bool {
	return j.w.plan.Climate == Within || j.w.plan.Climate == Calm
}

// ordersTokens reports whether a token that goes back is a violation.
func (j *judge) ordersTokens() bool {
	return j.w.plan.Climate != BeyondMemory
}

// acquired records a lease at the moment it is acquired.
func (j *judge) acquired(l *redlatch.Lease, call Call, began time.Duration) *held {
	w := j.w
	share := call.Share
	share.Slot = uint8(l.Slot())
	h := &held{Lease: l, name: call.Name, client: call.Client, had: w.now(), asked: share, share: share}
	if slots := int(share.Slots); l.Slot() >= max(slots, 1) {
		w.fail("client %d has slot %d of %d", h.client, l.Slot(), slots)
	}
	j.mu.Lock()
	var overlap, back, same *held
	alike, downgraded := 0, false
	for _, o := range j.all {
		if o.name != h.name {
			continue
		}
		if !j.ended(o) {
			if exclusion.Conflict(o.share, h.share) {
				overlap = o
			}
			if o.share.Mode == h.share.Mode {
				alike++
				downgraded = downgraded || o.share.Mode != o.asked.Mode
			}
		}
		// Readers do not exclude each other: their tokens need no order. Nor do
		// slots that were asked for at the same time.
		conflict := exclusion.Conflict(o.asked, h.asked)
		if !conflict && h.asked.Mode == node.Shared {
			continue
		}
		if o.Token() == h.Token() {
			same = o
		}
		if (conflict && j.excludes() || o.had <= began) && o.Token() > h.Token() {
			back = o
		}
	}
	j.beside(h, alike, downgraded)
	j.all = append(j.all, h)
	if overlap != nil {
		j.out.Overlaps++
	}
	wait := time.Duration(0)
	if since, known := j.free[h.name]; known {
		wait = h.had - max(since, began)
	}
	j.mu.Unlock()
	if have := w.having(h); w.plan.Climate == Calm && have <= w.plan.Nodes/2 {
		w.fail("a lease of client %d is held on %d of %d nodes", h.client, have, w.plan.Nodes)
	}
	most := calmWait
	if w.plan.Observed > 0 {
		most *= 3 // a request takes two rounds, and is repeated if another has written meanwhile
	}
	if w.plan.Climate == Calm && wait > most {
		w.fail("a lock that was free and contended was acquired by client %d only after %v, though nothing was wrong", h.client, wait)
	}
	switch {
	case overlap != nil && j.excludes():
		w.fail("two leases on %s are valid at once: client %d's (%v), acquired at %v, and client %d's (%v)",
			nameOf(h.name), overlap.client, overlap.share, overlap.had, h.client, h.share)
	case back != nil && j.ordersTokens():
		w.fail("token %v of client %d came after %v of client %d", h.Token(), h.client, back.Token(), back.client)
	case same != nil && j.ordersTokens():
		w.fail("token %v of client %d is also that of client %d", h.Token(), h.client, same.client)
	}
	j.look(h)
	return h
}

// beside counts a lease that has just been acquired beside so many like it.
func (j *judge) beside(h *held, alike int, downgraded bool) {
	count := func(what string, is bool) {
		if is {
			j.out.Seen[what]++
		}
	}
	switch h.share.Mode {
	case node.Shared:
		count("reader beside another", alike > 0)
		count("three readers at once", alike > 1)
		count("reader beside a writer that was downgraded", downgraded)
	case node.Slotted:
		count("slot beside another", alike > 0)
		count("name with all slots held", alike+1 == int(h.share.Slots))
	}
}

// saw counts something that is wanted.
func (j *judge) saw(what string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.out.Seen[what]++
}

// downgrading records that a writer is a reader from now on.
func (j *judge) downgrading(h *held) {
	j.mu.Lock()
	defer j.mu.Unlock()
	h.share = node.Share{Mode: node.Shared}
}

// downgraded records the end of a downgrade.
func (j *judge) downgraded(h *held, err error) {
	if err == nil {
		j.saw("downgrade")
	}
	if have := j.w.having(h); err == nil && j.w.plan.Climate == Calm && have <= j.w.plan.Nodes/2 {
		j.w.fail("client %d is a reader on %d of %d nodes after its downgrade", h.client, have, j.w.plan.Nodes)
	}
}

// having returns how many nodes report that the lease's client has what the
// lease is.
func (w *World) having(h *held) (n int) {
	for _, host := range w.hosts {
		for _, holder := range host.holders(nameOf(h.name)) {
			if c := w.ownerOf(holder.Value); c != nil && c.number == h.client && holder.Share == h.share {
				n++
				break
			}
		}
	}
	return n
}

// ended reports whether a lease says that it has ended. A lease that has ended
// must not become valid again.
func (j *judge) ended(h *held) bool {
	ended := h.Err() != nil
	if h.over && !ended && j.out.Violation == "" {
		j.out.Violation = "a lease that had ended is valid again"
	}
	h.over = h.over || ended
	return h.over
}

// look checks a lease during its life: its context and its deadline must agree.
func (j *judge) look(h *held) {
	j.mu.Lock()
	ended := j.ended(h)
	j.mu.Unlock()
	if done := h.Context().Err() != nil; ended != done {
		j.w.fail("the lease of client %d has ended: %v; its context: %v", h.client, ended, done)
	}
	if left, most := h.Remaining(), h.TTL()-h.TTL()/100; left > most {
		j.w.fail("a lease of %v is valid for another %v", h.TTL(), left)
	}
}

// releasing records that a name is about to be free.
func (j *judge) releasing(h *held) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.free[h.name] = j.w.now()
}

// dropped records that a holder has forgotten its lease, which then expires.
func (j *judge) dropped(h *held) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.free, h.name)
}
