package node

import (
	"cmp"
	"slices"
	"time"
)

// Holder is one holder of a name on a node.
type Holder struct {
	Value string
	// Token is the token that it was last granted with; 0 for none.
	Token Token
	// Until is its expiry.
	Until time.Time
	Share
}

// Holders are all holders of a name, in the order of their tokens, then of their
// values. So nodes that have the same holders name the same one first. Nodes that
// are written in Go can keep them in this form.
type Holders []Holder

// Sort puts holders in their order.
func (h Holders) Sort() { slices.SortFunc(h, order) }

// With returns the holders with one more, in its place.
func (h Holders) With(one Holder) Holders {
	at, _ := slices.BinarySearchFunc(h, one, order)
	return slices.Insert(h, at, one)
}

func order(a, b Holder) int {
	return cmp.Or(cmp.Compare(a.Token, b.Token), cmp.Compare(a.Value, b.Value))
}

// Of returns the index of the holder that a request is about; -1 if there is
// none. An exclusive request does not find a shared holder, even under its own
// value: after a Downgrade, it is late.
func (h Holders) Of(value string, share Share) int {
	for i := range h {
		if h[i].Value == value && (share.Mode != Exclusive || h[i].Mode == Exclusive) {
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
func (h Holders) Free(slots uint8, except int) SlotSet {
	free := AllSlots(slots)
	for i := range h {
		switch {
		case i == except:
		case h[i].Mode == Slotted && h[i].Slots == slots:
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
func (h Holders) Place(s Share, except int) (Share, bool) {
	room := h.Room(except)
	if !room.Take(s) {
		return Share{}, false
	}
	if s.Mode != Slotted {
		return s, true
	}
	free := h.Free(s.Slots, except)
	switch {
	case free.Has(s.Slot):
	case except >= 0 && h[except].Mode == Slotted && h[except].Slots == s.Slots:
		s.Slot = h[except].Slot
	default:
		s.Slot = free.Lowest()
	}
	return s, true
}

// Left returns when the name may have room for a share, if nobody extends: when
// the first slot of the same number is free, or when all holders have expired.
func (h Holders) Left(s Share, now time.Time) time.Duration {
	var first, last time.Time
	for i := range h {
		if first.IsZero() || h[i].Until.Before(first) {
			first = h[i].Until
		}
		if h[i].Until.After(last) {
			last = h[i].Until
		}
	}
	if s.Mode == Slotted && len(h) > 0 && h[0].Mode == Slotted && h[0].Slots == s.Slots {
		return first.Sub(now)
	}
	return last.Sub(now)
}

// Describe fills a Held reply to a request for a share.
func (h Holders) Describe(r *Reply, s Share, now time.Time) {
	r.Value, r.HolderToken, r.Share, r.Holders = h[0].Value, h[0].Token, h[0].Share, len(h)
	r.Left = h.Left(s, now)
}
