package nodestate

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"github.com/redlatch/redlatch/node"
)

// Holders are all holders of a name, in the order of their tokens, then of their
// values. So nodes that have the same holders name the same one first.
type Holders []node.Holder

// Sort puts holders in their order.
func (h Holders) Sort() { slices.SortFunc(h, order) }

// With returns the holders with one more, in its place.
func (h Holders) With(one node.Holder) Holders {
	at, _ := slices.BinarySearchFunc(h, one, order)
	return slices.Insert(h, at, one)
}

func order(a, b node.Holder) int {
	return cmp.Or(cmp.Compare(a.Token, b.Token), cmp.Compare(a.Value, b.Value))
}

// Of returns the index of the holder that a request is about; -1 if there is
// none. An exclusive request does not find a shared holder, even under its own
// value: after a Downgrade, it is late.
func (h Holders) Of(value string, share node.Share) int {
	for i := range h {
		if h[i].Value == value && (share.Mode != node.Exclusive || h[i].Mode == node.Exclusive) {
			return i
		}
	}
	return -1
}

// Room returns what is left beside the holders, except for the one at the index
// except; -1 for none.
func (h Holders) Room(except int) (r Room) {
	for i := range h {
		if i != except {
			r.Take(h[i].Share)
		}
	}
	return r
}

// Free returns the free slots of a number of slots. The holder at the index
// except does not count; -1 for none.
func (h Holders) Free(slots uint8, except int) node.SlotSet {
	free := node.SlotSet(1)<<slots - 1
	for i := range h {
		switch {
		case i == except:
		case h[i].Mode == node.Slotted && h[i].Slots == slots:
			free &^= 1 << h[i].Slot
		default:
			return 0
		}
	}
	return free
}

// Place returns the share that an OpAcquire gets: the one it asks for, with the
// lowest free slot if its slot is taken. It reports false if there is no room.
// The holder at the index except does not count, and keeps its slot if the one
// that it asks for is taken; -1 for none.
func (h Holders) Place(s node.Share, except int) (node.Share, bool) {
	room := h.Room(except)
	if !room.Take(s) {
		return node.Share{}, false
	}
	if s.Mode != node.Slotted {
		return s, true
	}
	free := h.Free(s.Slots, except)
	switch {
	case free.Has(s.Slot):
	case except >= 0 && h[except].Mode == node.Slotted && h[except].Slots == s.Slots:
		s.Slot = h[except].Slot
	default:
		s.Slot = uint8(bits.TrailingZeros64(uint64(free)))
	}
	return s, true
}

// Left returns when the name may have room for a share, if nobody extends: when
// the first slot of the same number is free, or when all holders have expired.
func (h Holders) Left(s node.Share, now time.Time) time.Duration {
	var first, last time.Time
	for i := range h {
		if first.IsZero() || h[i].Until.Before(first) {
			first = h[i].Until
		}
		if h[i].Until.After(last) {
			last = h[i].Until
		}
	}
	if s.Mode == node.Slotted && len(h) > 0 && h[0].Mode == node.Slotted && h[0].Slots == s.Slots {
		return first.Sub(now)
	}
	return last.Sub(now)
}

// Describe fills a Held reply to a request for a share.
func (h Holders) Describe(r *node.Reply, s node.Share, now time.Time) {
	r.Value, r.HolderToken, r.Share, r.Holders = h[0].Value, h[0].Token, h[0].Share, len(h)
	r.Left = h.Left(s, now)
}

// Room is what is left of a name beside its holders. It is the admission rule
// of every mode. The zero value is a free name.
type Room struct {
	closed  bool // by an exclusive holder
	readers int
	slots   uint8 // the number of slots, if one is taken; else 0
	used    int   // how many are taken
}

// Take takes a share, and reports false if it does not fit. Any free slot will
// do.
func (r *Room) Take(s node.Share) bool {
	switch {
	case r.closed:
		return false
	case s.Mode == node.Exclusive && (r.readers > 0 || r.slots > 0):
		return false
	case s.Mode == node.Shared && (r.slots > 0 || r.readers >= node.MaxHolders):
		return false
	case s.Mode == node.Slotted && (r.readers > 0 || r.slots > 0 && (r.slots != s.Slots || r.used >= int(s.Slots))):
		return false
	}
	switch s.Mode {
	case node.Exclusive:
		r.closed = true
	case node.Shared:
		r.readers++
	case node.Slotted:
		r.slots, r.used = s.Slots, r.used+1
	}
	return true
}
