package sim

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/node"
)

// judge notes the leases, and has package exclusion judge each beside those before it.
type judge struct {
	w    *World
	mu   sync.Mutex
	all  map[int][]*held       // by name
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
	judged exclusion.Lease // until then it was observed to be valid
}

// share is what it is: a reader since a downgrade.
func (h *held) share() node.Share { return h.judged.At(math.MaxInt64) }

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
	for _, leases := range j.all {
		j.out.Locks += len(leases)
	}
	return j.out
}

// excludes reports whether two leases at once are a violation.
func (j *judge) excludes() bool {
	return j.w.plan.Climate == Within || j.w.plan.Climate == Calm
}

// acquired records a lease at the moment it is acquired.
func (j *judge) acquired(l *redlatch.Lease, call Call, began time.Duration) *held {
	w, now := j.w, j.w.now()
	share := call.Share
	share.Slot = uint8(l.Slot())
	h := &held{Lease: l, name: call.Name, client: call.Client, judged: exclusion.Lease{
		Who: fmt.Sprintf("client %d's lease on %s of %v", call.Client, nameOf(call.Name), now), Share: share, Token: uint64(l.Token()),
		Asked: int64(began), Got: int64(now), Until: math.MaxInt64,
	}}
	j.mu.Lock()
	var before []*exclusion.Lease
	for _, o := range j.all[h.name] {
		j.ended(o)
		before = append(before, &o.judged)
	}
	faults := h.judged.Grant(before, j.excludes())
	j.beside(h)
	j.all[h.name] = append(j.all[h.name], h)
	overlaps := slices.ContainsFunc(faults, func(f exclusion.Fault) bool { return f.Rule == exclusion.Overlap })
	if overlaps {
		j.out.Overlaps++
	}
	wait := time.Duration(0)
	if since, known := j.free[h.name]; known {
		wait = now - max(since, began)
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
	for _, f := range faults {
		if f.Rule == exclusion.Overlap && j.excludes() || f.Rule == exclusion.TokenOrder && w.plan.Climate != BeyondMemory {
			w.fail("%s: %s", f.Rule, f.Text)
		}
	}
	j.look(h)
	return h
}

// beside counts a lease that has just been acquired beside so many like it.
func (j *judge) beside(h *held) {
	alike, downgraded := 0, false
	for _, o := range h.judged.Beside {
		if is := o.At(h.judged.Got); is.Mode == h.judged.Mode {
			alike++
			downgraded = downgraded || is.Mode != o.Mode
		}
	}
	count := func(what string, is bool) {
		if is {
			j.out.Seen[what]++
		}
	}
	switch h.judged.Mode {
	case node.Shared:
		count("reader beside another", alike > 0)
		count("three readers at once", alike > 1)
		count("reader beside a writer that was downgraded", downgraded)
	case node.Slotted:
		count("slot beside another", alike > 0)
		count("name with all slots held", alike+1 == int(h.judged.Slots))
	}
}

// change changes what is guarded by the mutex.
func (j *judge) change(what func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	what()
}

// saw counts something that is wanted.
func (j *judge) saw(what string) { j.change(func() { j.out.Seen[what]++ }) }

// downgrading records that a writer is a reader from now on.
func (j *judge) downgrading(h *held) { j.change(func() { h.judged.Down = int64(j.w.now()) }) }

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
			if c := w.ownerOf(holder.Value); c != nil && c.number == h.client && holder.Share == h.share() {
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
	ended, over := h.Err() != nil, h.judged.Until < math.MaxInt64
	if over && !ended && j.out.Violation == "" {
		j.out.Violation = "a lease that had ended is valid again"
	}
	if ended && !over {
		h.judged.Until = int64(j.w.now())
	}
	return over || ended
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
func (j *judge) releasing(h *held) { j.change(func() { j.free[h.name] = j.w.now() }) }

// dropped records that a holder has forgotten its lease, which then expires.
func (j *judge) dropped(h *held) { j.change(func() { delete(j.free, h.name) }) }
