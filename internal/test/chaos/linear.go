//go:build unix

package chaos

import (
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"
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

// lockState is a lock with a token: who holds it, and the highest tokens so far.
// It can be compared.
type lockState struct {
	// holders has an entry for each holder: the number of its lease, in eight
	// hexadecimal digits, and what it has of the lock: w, r, or the slot and the
	// number of slots, as two letters.
	holders string
	any     *Lease // with the highest token
	writer  *Lease // with the highest token of those that are no readers
}

const (
	numberDigits = 8
	entrySize    = numberDigits + 2
)

func entry(number int, s Share) string {
	what := "w "
	switch s.Mode {
	case Reader:
		what = "r "
	case Slot:
		what = string([]byte{'0' + byte(s.Slot), '0' + byte(s.Slots)})
	}
	return fmt.Sprintf("%0*x%s", numberDigits, number, what)
}

// room reports whether the lock can be granted beside its holders.
func (s lockState) room(l *Lease) bool {
	count := len(s.holders) / entrySize
	for i := range count {
		what := s.holders[i*entrySize+numberDigits : (i+1)*entrySize]
		switch {
		case l.Mode == Writer || what == "w ":
			return false
		case l.Mode == Reader && what != "r ", l.Mode == Slot && what == "r ":
			return false
		case l.Mode == Slot && (what[0] == '0'+byte(l.Slot) || what[1] != '0'+byte(l.Slots)):
			return false
		}
	}
	return l.Mode != Slot || count < l.Slots && l.Slot < l.Slots
}

// of returns where the entry of a lease is; -1 if it holds nothing.
func (s lockState) of(number int) int {
	want := fmt.Sprintf("%0*x", numberDigits, number)
	for i := 0; i < len(s.holders); i += entrySize {
		if s.holders[i:i+numberDigits] == want {
			return i
		}
	}
	return -1
}

// with returns the state with another holder, in the order of their numbers.
func (s lockState) with(number int, share Share) lockState {
	e, i := entry(number, share), 0
	for i < len(s.holders) && s.holders[i:i+numberDigits] < e[:numberDigits] {
		i += entrySize
	}
	s.holders = s.holders[:i] + e + s.holders[i:]
	return s
}

// without returns the state without the holder whose entry is there.
func (s lockState) without(i int) lockState {
	s.holders = s.holders[:i] + s.holders[i+entrySize:]
	return s
}

// model is a correct lock: it is granted to one writer, or to readers, or to one
// lease for each slot. Each has a higher token than all before it; a reader, than
// all before it that are no readers.
func (h *History) model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return lockState{} },
		Step: func(state, input, _ any) (bool, any) {
			s, o := state.(lockState), input.(op)
			i := s.of(o.number)
			switch o.what {
			case ends:
				if i < 0 {
					return false, s
				}
				return true, s.without(i)
			case downgrades:
				// One that was not confirmed may come after the end.
				if i < 0 {
					return true, s
				}
				return true, s.without(i).with(o.number, Share{Mode: Reader})
			}
			above := s.any
			if o.lease.Mode == Reader {
				above = s.writer
			}
			if !s.room(o.lease) || above != nil && above.Token >= o.lease.Token && h.forgottenIn(above.Asked, o.lease.Got) == nil {
				return false, s
			}
			if s.any == nil || s.any.Token < o.lease.Token {
				s.any = o.lease
			}
			if o.lease.Mode != Reader && (s.writer == nil || s.writer.Token < o.lease.Token) {
				s.writer = o.lease
			}
			return true, s.with(o.number, o.lease.Share)
		},
		DescribeOperation: func(input, _ any) string {
			o := input.(op)
			return [...]string{"", "downgrade of ", "end of "}[o.what] + o.lease.String()
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
				if next.Got >= over && l.at(over).conflicts(next.Share) {
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
