package sim

import (
	"fmt"

	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/node"
)

// Together counts what happened with leases beside others.
type Together struct {
	Readers    int // readers that came while others held the lock
	Most       int // most of them at once
	Slots      int // slots that were taken while others were held
	Full       int // times that all slots were held
	Downgrades int // writers that became readers
	Beside     int // readers that came beside such a one
	Refused    int // stale holders that the resource refused
}

func (t *Together) add(o Together) {
	t.Readers += o.Readers
	t.Most = max(t.Most, o.Most)
	t.Slots += o.Slots
	t.Full += o.Full
	t.Downgrades += o.Downgrades
	t.Beside += o.Beside
	t.Refused += o.Refused
}

// missing returns what never happened; "" if all of it did.
func (t *Together) missing() string {
	for what, n := range map[string]int{
		"reader beside another": t.Readers, "three readers at once": t.Most / 3, "slot beside another": t.Slots,
		"name with all slots held": t.Full, "downgrade": t.Downgrades, "reader beside a writer that was downgraded": t.Beside,
		"stale holder that the resource refused": t.Refused,
	} {
		if n == 0 {
			return what
		}
	}
	return ""
}

// count counts a lease that has just been acquired, beside those that are valid.
func (t *Together) count(h *held, others []*held) {
	readers, downgraded, slots := 0, 0, 0
	for _, o := range others {
		switch {
		case o.name != h.name || o == h:
		case o.share.Mode == node.Shared:
			readers++
			if o.wrote {
				downgraded++
			}
		case o.share.Mode == node.Slotted:
			slots++
		}
	}
	switch h.share.Mode {
	case node.Shared:
		if readers > 0 {
			t.Readers++
		}
		if downgraded > 0 {
			t.Beside++
		}
		t.Most = max(t.Most, readers+1)
	case node.Slotted:
		if slots > 0 {
			t.Slots++
		}
		if slots+1 == int(h.share.Slots) {
			t.Full++
		}
	}
}

// resource is what a lock protects. It refuses a token below what it has
// seen of those that exclude its holder.
type resource struct {
	reads  node.Token // the highest token of a reader
	writes node.Token // the highest of a writer
	slots  map[uint8]node.Token
}

// anySlot is the highest token of any slot.
func (r *resource) anySlot() (highest node.Token) {
	for _, t := range r.slots {
		highest = max(highest, t)
	}
	return highest
}

// use uses the resource: a writer for everything, a reader to read, a slot for
// its own part. It reports false if it is refused.
func (r *resource) use(s node.Share, t node.Token) bool {
	switch s.Mode {
	case node.Shared:
		if t < max(r.writes, r.anySlot()) {
			return false
		}
		r.reads = max(r.reads, t)
	case node.Slotted:
		if t < max(r.writes, r.reads, r.slots[s.Slot]) {
			return false
		}
		if r.slots == nil {
			r.slots = map[uint8]node.Token{}
		}
		r.slots[s.Slot] = t
	default:
		if t < max(r.writes, r.reads, r.anySlot()) {
			return false
		}
		r.writes = t
	}
	return true
}

// shareOf is what a call is to hold.
func shareOf(call Call, slot int) node.Share {
	switch {
	case call.Shared:
		return node.Share{Mode: node.Shared}
	case call.Slots > 0:
		return node.Share{Mode: node.Slotted, Slots: uint8(call.Slots), Slot: uint8(slot)}
	}
	return node.Share{}
}

// use has the holder of a lease use the resource. It is refused if it is stale,
// and never if it is valid.
func (j *judge) use(h *held) {
	if !j.excludes() || !j.ordersTokens() {
		return
	}
	if what := j.used(h); what != "" {
		j.w.fail("%s", what)
	}
}

func (j *judge) used(h *held) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.things == nil {
		j.things = map[int]*resource{}
	}
	thing := j.things[h.name]
	if thing == nil {
		thing = &resource{}
		j.things[h.name] = thing
	}
	valid := !j.ended(h)
	var later *held
	for _, o := range j.all {
		if o.name == h.name && o.had > h.had && o.used && exclusion.Conflict(o.asked, h.share) {
			later = o
		}
	}
	accepted := thing.use(h.share, h.Token())
	h.used = h.used || accepted
	if !accepted {
		j.out.Together.Refused++
	}
	switch {
	case valid && !accepted:
		return fmt.Sprintf("the resource refuses client %d, which holds the %v of %s with token %v", h.client, h.share, nameOf(h.name), h.Token())
	case !valid && accepted && later != nil:
		return fmt.Sprintf("the resource accepts token %v of client %d (%v) after %v of client %d (%v)",
			h.Token(), h.client, h.share, later.Token(), later.client, later.asked)
	}
	return ""
}
