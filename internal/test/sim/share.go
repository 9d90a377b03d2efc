package sim

import (
	"fmt"

	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/node"
)

// wanted is what must happen in many histories, or they show less than they seem
// to: leases beside others, and what a resource is for.
var wanted = []string{
	besideReader, threeReaders, besideDowngraded, besideSlot, allSlots, downgrades, refusals,
}

const (
	besideReader     = "reader beside another"
	threeReaders     = "three readers at once"
	besideDowngraded = "reader beside a writer that was downgraded"
	besideSlot       = "slot beside another"
	allSlots         = "name with all slots held"
	downgrades       = "downgrade"
	refusals         = "stale holder that the resource refused"
)

// beside counts a lease that has just been acquired, beside those that are valid.
func (j *judge) beside(h *held) {
	count := func(what string, is bool) {
		if is {
			j.out.Seen[what]++
		}
	}
	same, downgraded := 0, false
	for _, o := range j.held {
		if o.name == h.name && o != h && o.share.Mode == h.share.Mode {
			same++
			downgraded = downgraded || o.wrote
		}
	}
	switch h.share.Mode {
	case node.Shared:
		count(besideReader, same > 0)
		count(threeReaders, same > 1)
		count(besideDowngraded, downgraded)
	case node.Slotted:
		count(besideSlot, same > 0)
		count(allSlots, same+1 == int(h.share.Slots))
	}
}

// resource is what a lock protects: the highest token of each share. It refuses a
// token below one of those that exclude its holder.
type resource map[node.Share]node.Token

// use uses the resource, and reports false if it is refused.
func (r resource) use(s node.Share, t node.Token) bool {
	for other, highest := range r {
		if t < highest && exclusion.Conflict(s, other) {
			return false
		}
	}
	r[s] = max(r[s], t)
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
	thing := j.things[h.name]
	if thing == nil {
		thing = resource{}
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
		j.out.Seen[refusals]++
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
