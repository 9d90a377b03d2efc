//go:build unix

package chaos

import (
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"
)

// op is a step of a lock with a token, as input for porcupine: the lock is
// granted to a lease, or a lease on it ends.
type op struct {
	lease *Lease
	ends  bool
}

// lockState is a lock with a token: its holder, and its last holder.
type lockState struct {
	holder *Lease
	last   *Lease
}

// model is a correct lock. It is granted to one lease at a time, and each has a
// higher token than the one before.
func (h *History) model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return lockState{} },
		Step: func(state, input, _ any) (bool, any) {
			s, o := state.(lockState), input.(op)
			if o.ends {
				return s.holder == o.lease, lockState{last: s.last}
			}
			if s.holder != nil {
				return false, s
			}
			if s.last != nil && s.last.Token >= o.lease.Token && h.forgottenIn(s.last.Asked, o.lease.Got) == nil {
				return false, s
			}
			return true, lockState{holder: o.lease, last: o.lease}
		},
		DescribeOperation: func(input, _ any) string {
			o := input.(op)
			if o.ends {
				return fmt.Sprintf("end of %s", o.lease)
			}
			return o.lease.String()
		},
	}
}

// operations are the leases on one name, for porcupine. A lease ends at some
// moment after the client last used it, and before the next was granted. If an
// assumption was broken while it was valid, it may have ended from then on.
func (h *History) operations(leases []*Lease) []porcupine.Operation {
	var all []porcupine.Operation
	for i, l := range leases {
		ends, over := max(l.Until, l.Got), int64(math.MaxInt64)
		if fault, when := h.breakIn(l.Asked, ends); fault != nil {
			ends = max(l.Asked, when.From)
		} else {
			for _, next := range leases[i+1:] {
				if next.Got >= ends {
					over = next.Got
					break
				}
			}
			if l.Released && l.Freed >= ends {
				over = min(over, l.Freed)
			}
		}
		all = append(all,
			porcupine.Operation{ClientId: l.Client, Input: op{lease: l}, Call: l.Asked, Return: l.Got},
			porcupine.Operation{ClientId: l.Client, Input: op{lease: l, ends: true}, Call: ends, Return: max(over, ends)})
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
