package stats

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/redlatch/redlatch/internal/test/exclusion"
)

// Request is one contender's request for a lock and its time with it, in
// moments of the shared clock. Processes report it in this form.
type Request struct {
	Contender int32 `json:"c"`
	// Got is false for a contender that was still waiting when the time was
	// over; then Acquired is when it stopped waiting.
	Got bool `json:"got"`
	// Called is when the contender asked, Acquired when it was granted the
	// lock, Released when it asked to release it, Freed when that was done, if
	// it is known.
	Called   int64 `json:"called"`
	Acquired int64 `json:"acquired"`
	Released int64 `json:"released"`
	Freed    int64 `json:"freed,omitempty"`
}

// History is what all contenders for a lock did.
type History struct {
	Contenders int
	Requests   []Request
}

// got returns the requests that were granted, in the order in which they were.
func (h History) got() []Request {
	list := slices.DeleteFunc(slices.Clone(h.Requests), func(r Request) bool { return !r.Got })
	slices.SortFunc(list, func(a, b Request) int { return cmp.Compare(a.Acquired, b.Acquired) })
	return list
}

// Acquisitions returns how often the lock was acquired, by anybody.
func (h History) Acquisitions() int { return len(h.got()) }

// Between returns the part of the history that was acquired, or waited for
// without success, from one moment to another.
func (h History) Between(from, to int64) History {
	h.Requests = slices.DeleteFunc(slices.Clone(h.Requests), func(r Request) bool {
		return r.Acquired < from || r.Got && r.Acquired > to || !r.Got && r.Called >= to
	})
	return h
}

// Waits returns how long requests took. One that was not served counts with its
// wait until the time was over. If it were left out, a lock that starves its
// waiters would look better.
func (h History) Waits() (times []time.Duration) {
	for _, r := range h.Requests {
		times = append(times, time.Duration(r.Acquired-r.Called))
	}
	return times
}

// Pairs returns how long the lock and the release took together, without the time
// in between.
func (h History) Pairs() (times []time.Duration) {
	for _, r := range h.Requests {
		if r.Freed > 0 {
			times = append(times, time.Duration(r.Freed-r.Released+r.Acquired-r.Called))
		}
	}
	return times
}

// HandOvers returns, for each acquisition by a contender since whose own last
// release another one acquired the lock, the time from the release before it.
// All other acquisitions are by contenders that took again what they had just
// released, past others that waited.
func (h History) HandOvers() []time.Duration {
	var times []time.Duration
	own := map[int32]int64{} // each contender's last release
	holds := h.got()
	for i, x := range holds {
		if i > 0 {
			before := holds[i-1]
			released, again := own[x.Contender]
			if before.Contender != x.Contender && (!again || before.Acquired >= released) {
				times = append(times, time.Duration(x.Acquired-before.Released))
			}
		}
		own[x.Contender] = x.Released
	}
	return times
}

// Shares returns how often each contender had the lock, including those that
// never had it.
func (h History) Shares() []int {
	shares := make([]int, h.Contenders)
	for _, r := range h.got() {
		shares[r.Contender]++
	}
	return shares
}

// Overtaken returns by how many a caller was overtaken at most, of those who asked
// from a moment on: who asked later than it, and acquired earlier.
func (h History) Overtaken(from int64) (most int) {
	list := slices.SortedFunc(slices.Values(h.Requests), func(a, b Request) int { return cmp.Compare(b.Called, a.Called) })
	var later []int64 // when those who asked later acquired, sorted
	for _, r := range list {
		if r.Called < from {
			break
		}
		i, _ := slices.BinarySearch(later, r.Acquired)
		if most = max(most, i); r.Got {
			later = slices.Insert(later, i, r.Acquired)
		}
	}
	return most
}

// Overlaps returns the holds that began while the lock was held. A hold lasts from the
// moment at which its contender knew that it had the lock to the moment at which it
// asked to release it: what the servers think is longer at both ends, so no delay of a
// message looks like a fault.
func (h History) Overlaps() []exclusion.Fault {
	var leases []*exclusion.Lease
	for _, r := range h.got() {
		leases = append(leases, &exclusion.Lease{Who: fmt.Sprint("contender ", r.Contender), Asked: r.Called, Got: r.Acquired, Until: r.Released})
	}
	return exclusion.Judge(leases)
}
