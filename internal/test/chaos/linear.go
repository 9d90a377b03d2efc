//go:build unix

package chaos

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/redlatch/redlatch/internal/test/exclusion"
)

// op is a step of a lock with a token, as input for porcupine: the lock is
// granted to a lease, or a lease on it becomes a reader's, or ends.
type op struct {
	lease  *Lease
	number int // of the lease, among those that porcupine gets
	what   act
}

type act int

const (
	grants act = iota
	downgrades
	ends
)

// lockState is a lock with a token: its holders, in the order of their numbers,
// and the leases with the highest token so far.
type lockState struct {
	holders []holder
	any     *Lease
	writer  *Lease // of those that are no readers
}

// holder is a lease, by its number, and what it has of the lock.
type holder struct {
	number int
	share  Share
}

func (s lockState) equals(o lockState) bool {
	return s.any == o.any && s.writer == o.writer && slices.Equal(s.holders, o.holders)
}

// without returns the state without a holder, and whether it was one.
func (s lockState) without(number int) (lockState, bool) {
	i := slices.IndexFunc(s.holders, func(h holder) bool { return h.number == number })
	if i >= 0 {
		s.holders = slices.Delete(slices.Clone(s.holders), i, i+1)
	}
	return s, i >= 0
}

// with returns the state with another holder.
func (s lockState) with(number int, share Share) lockState {
	s.holders = append(slices.Clone(s.holders), holder{number, share})
	slices.SortFunc(s.holders, func(a, b holder) int { return cmp.Compare(a.number, b.number) })
	return s
}

// room reports whether the lock can be granted beside its holders.
func (s lockState) room(l *Lease) bool {
	return l.possible() && !slices.ContainsFunc(s.holders, func(h holder) bool { return exclusion.Conflict(h.share, l.Share) })
}

// higher returns the lease with the higher token.
func higher(a, b *Lease) *Lease {
	if a == nil || a.Token < b.Token {
		return b
	}
	return a
}

// model is a correct lock: it is granted to one writer, or to readers, or to one
// lease for each slot. Each has a higher token than all before it; a reader, than
// all before it that are no readers.
func (h *History) model() porcupine.Model {
	return porcupine.Model{
		Init:  func() any { return lockState{} },
		Equal: func(a, b any) bool { return a.(lockState).equals(b.(lockState)) },
		Step: func(state, input, _ any) (bool, any) {
			s, o := state.(lockState), input.(op)
			switch o.what {
			case ends:
				next, held := s.without(o.number)
				return held, next
			case downgrades:
				// One that was not confirmed may come after the end.
				if next, held := s.without(o.number); held {
					return true, next.with(o.number, Share{Mode: Reader})
				}
				return true, s
			}
			above := s.any
			if o.lease.Mode == Reader {
				above = s.writer
			}
			if !s.room(o.lease) || above != nil && above.Token >= o.lease.Token && h.forgottenIn(above.Asked, o.lease.Got) == nil {
				return false, s
			}
			s.any = higher(s.any, o.lease)
			if o.lease.Mode != Reader {
				s.writer = higher(s.writer, o.lease)
			}
			return true, s.with(o.number, o.lease.Share)
		},
	}
}

// operations are the leases on one name, for porcupine. A lease ends at some
// moment after the client last used it, and before the next was granted that it
// would exclude. If an assumption was broken while it was valid, it may have
// ended from then on.
func (h *History) operations(leases []*Lease) []porcupine.Operation {
	var all []porcupine.Operation
	for i, l := range leases {
		over, never := max(l.taken(), l.Got), int64(math.MaxInt64)
		gone := never
		if fault, when := h.breakIn(l.Asked, over); fault != nil {
			over = max(l.Asked, when.From)
		} else {
			for _, next := range leases[i+1:] {
				if next.Got >= over && exclusion.Conflict(l.at(over), next.Share) {
					gone = next.Got
					break
				}
			}
			if l.Released && l.Freed >= over {
				gone = min(gone, l.Freed)
			}
		}
		add := func(what act, from, to int64) {
			all = append(all, porcupine.Operation{ClientId: l.Client, Input: op{l, i, what}, Call: from, Return: max(from, to)})
		}
		add(grants, l.Asked, l.Got)
		if l.Settled > 0 {
			add(downgrades, l.Down, l.Settled)
		} else if l.Down > 0 {
			add(downgrades, l.Down, never)
		}
		add(ends, over, gone)
	}
	return all
}

const (
	// linearLimit is how long porcupine may search one stretch.
	linearLimit = 60 * time.Second
	// stretch is how many leases porcupine gets at once, and overlapping how
	// many of them it gets again with the next: its memory grows with the
	// square. A history that is in order is so in every stretch. Disorder over
	// a longer time is found by the rule about tokens.
	stretch     = 4000
	overlapping = 1000
)

// linear asks porcupine whether the leases on one name can be put in an order
// in which the lock behaves correctly.
func (v *Verdict) linear(h *History, leases []*Lease) {
	for from := 0; from < len(leases); from += stretch - overlapping {
		part := leases[from:min(from+stretch, len(leases))]
		f := Finding{Rule: Order, Name: part[0].Name, At: part[0].Got}
		switch porcupine.CheckOperationsTimeout(h.model(), h.operations(part), linearLimit) {
		case porcupine.Ok:
			continue
		case porcupine.Illegal:
			f.Text = "the leases cannot be put in any order in which the lock behaves as it should"
		default:
			f.Text = fmt.Sprintf("porcupine came to no end within %v", linearLimit)
		}
		v.find(f, nil)
	}
}
