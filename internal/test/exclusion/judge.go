package exclusion

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/redlatch/redlatch/node"
)

// Lease is a lease as its holder knew it. All moments are of one clock.
type Lease struct {
	Who        string   // for the verdict
	node.Share          // as it was given
	Down       int64    // when it became a reader's; 0 if it did not
	Token      uint64   // 0 if the lock has none
	Asked, Got int64    // when it was asked for, and granted
	Until      int64    // its holder relied on it until then at most
	Kept       int64    // the lock is taken until then at least, released or not; 0 for none
	Beside     []*Lease // set by the judge: the valid ones when it was granted
}

// Taken is until when the lease must exclude others.
func (l *Lease) Taken() int64 { return max(l.Until, l.Kept) }

// At is what the lease has of the lock at a moment of its life.
func (l *Lease) At(moment int64) node.Share {
	if l.Down > 0 && l.Down <= moment {
		return node.Share{Mode: node.Shared}
	}
	return l.Share
}

func (l *Lease) String() string {
	what := fmt.Sprintf("token %d", l.Token)
	if l.Mode != node.Exclusive {
		what = l.Text() + ", " + what
	}
	return l.Who + " (" + what + ")"
}

// Rule is a rule that leases must keep.
type Rule string

// The rules.
const (
	Overlap    Rule = "overlap"     // two leases were valid at once that must not be
	Keep       Rule = "keep"        // a lock was given while it was kept
	TokenOrder Rule = "token order" // a later lease has no higher token
)

// Fault is a broken rule. It broke At; what would explain it happened Since.
type Fault struct {
	Rule
	Since, At int64
	Text      string
}

// Judge returns what is wrong in the leases of one name, which it sorts in the
// order in which they were granted. Its verdict is final.
func Judge(leases []*Lease) (faults []Fault) {
	slices.SortStableFunc(leases, func(a, b *Lease) int { return cmp.Compare(a.Got, b.Got) })
	var taken []*Lease
	for i, b := range leases {
		taken = slices.DeleteFunc(taken, func(a *Lease) bool { return a.Taken() <= b.Got })
		faults = append(append(faults, b.beside(taken)...), b.order(leases[:i], true)...)
		taken = append(taken, b)
	}
	return faults
}

// Grant returns what is wrong in a lease that has just been granted, beside those
// before it. If leases need not exclude each other, as where an assumption is broken,
// tokens grow from a grant to what is asked for after it.
func (l *Lease) Grant(before []*Lease, exclude bool) []Fault {
	taken := slices.DeleteFunc(slices.Clone(before), func(a *Lease) bool { return a.Taken() <= l.Got })
	return append(l.beside(taken), l.order(before, exclude)...)
}

// beside finds leases that were valid, or kept the lock, and must not have been: a
// writer beside any other, a reader beside a slot, a slot twice, one that there is not.
func (l *Lease) beside(taken []*Lease) (faults []Fault) {
	l.Beside = nil
	find := func(rule Rule, since int64, format string, args ...any) {
		faults = append(faults, Fault{rule, since, l.Got, fmt.Sprintf(format, args...)})
	}
	if l.Mode == node.Slotted && l.Slot >= l.Slots {
		find(Overlap, math.MaxInt64, "%s has a slot that there is not", l)
	}
	if l.Taken() <= l.Got {
		return faults
	}
	for _, a := range taken {
		if a.Until > l.Got {
			l.Beside = append(l.Beside, a)
		}
		switch {
		case !Conflict(a.At(l.Got), l.Share):
		case a.Until <= l.Got:
			find(Keep, a.Asked, "%s was given while the lock was kept for %s, for another %v", l, a, time.Duration(a.Kept-l.Got))
		case l.Until > l.Got: // otherwise it was never valid
			end := min(a.Until, l.Until)
			if a.Down > l.Got && l.Mode == node.Shared {
				end = min(end, a.Down)
			}
			if l.Down > 0 && a.At(l.Got).Mode == node.Shared {
				end = min(end, l.Down)
			}
			lasted := ""
			if end < math.MaxInt64 {
				lasted = fmt.Sprintf(" for %v", time.Duration(end-l.Got))
			}
			find(Overlap, a.Asked, "%s and %s were both valid%s", a, l, lasted)
		}
	}
	return faults
}

// order finds leases that were granted before and whose token is not lower. Readers
// have no order among themselves, and different slots that are asked for at once have
// none either: a majority may grant the later token while an earlier request for a slot
// that is still held is on its way to it. Without slots this is linearizability,
// together with beside: the history has the order of the tokens if each pair has it.
func (l *Lease) order(before []*Lease, exclude bool) (faults []Fault) {
	if l.Token == 0 {
		return nil
	}
	for _, a := range before {
		if a.Token < l.Token || a.Mode == node.Shared && l.Mode == node.Shared {
			continue
		}
		if a.Got < l.Asked || a.Token == l.Token || exclude && Conflict(a.Share, l.Share) {
			faults = append(faults, Fault{TokenOrder, min(l.Asked, a.Asked), l.Got, fmt.Sprintf("%s was granted after %s, and its token is not above it", l, a)})
		}
	}
	return faults
}
