package stats

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Hold is one contender's request for a lock and its time with it, in moments
// of the shared clock.
type Hold struct {
	Contender int32
	// Got is false for a contender that was still waiting when the time was
	// over; then Acquired is when it stopped waiting.
	Got bool
	// Called is when the contender asked, Acquired when it was granted the
	// lock, Released when it asked to release it.
	Called, Acquired, Released int64
}

// History is what all contenders of a cell did.
type History struct {
	Contenders int
	Holds      []Hold
}

// Overlap is two holds at the same time, which no lock allows.
type Overlap struct{ First, Second Hold }

func (o Overlap) String() string {
	return fmt.Sprintf("contender %d had the lock for %v more when contender %d got it",
		o.First.Contender, time.Duration(o.First.Released-o.Second.Acquired), o.Second.Contender)
}

// got returns the holds that were granted, in the order in which they began.
func (h History) got() []Hold {
	holds := make([]Hold, 0, len(h.Holds))
	for _, x := range h.Holds {
		if x.Got {
			holds = append(holds, x)
		}
	}
	slices.SortFunc(holds, func(a, b Hold) int { return cmp.Compare(a.Acquired, b.Acquired) })
	return holds
}

// Overlaps returns every hold that began before an earlier one had ended.
func (h History) Overlaps() []Overlap {
	var overlaps []Overlap
	var last Hold // of the earlier ones, the one that ended last
	for i, x := range h.got() {
		if i > 0 && x.Acquired < last.Released {
			overlaps = append(overlaps, Overlap{last, x})
		}
		if i == 0 || x.Released > last.Released {
			last = x
		}
	}
	return overlaps
}

// Waits returns how long each request took. One that was not served counts with
// its wait until the time was over. If it were left out, a lock that starves
// its waiters would look better.
func (h History) Waits() []time.Duration {
	waits := make([]time.Duration, 0, len(h.Holds))
	for _, x := range h.Holds {
		waits = append(waits, time.Duration(x.Acquired-x.Called))
	}
	return waits
}

// HandOvers returns, for each acquisition by another contender than the one
// before, the time from the release being called to the next holder running.
func (h History) HandOvers() []time.Duration {
	var times []time.Duration
	holds := h.got()
	for i := 1; i < len(holds); i++ {
		if before, x := holds[i-1], holds[i]; x.Contender != before.Contender {
			times = append(times, time.Duration(x.Acquired-before.Released))
		}
	}
	return times
}

// Held returns how long the lock was held each time.
func (h History) Held() []time.Duration {
	var times []time.Duration
	for _, x := range h.Holds {
		if x.Got {
			times = append(times, time.Duration(x.Released-x.Acquired))
		}
	}
	return times
}

// Between returns the part of the history that was acquired, or waited for
// without success, from one moment to another.
func (h History) Between(from, to int64) History {
	part := History{Contenders: h.Contenders}
	for _, x := range h.Holds {
		if x.Acquired >= from && x.Acquired <= to || !x.Got && x.Called < to {
			part.Holds = append(part.Holds, x)
		}
	}
	return part
}

// Shares returns how often each contender had the lock, including those that
// never had it.
func (h History) Shares() []int {
	shares := make([]int, h.Contenders)
	for _, x := range h.Holds {
		if x.Got {
			shares[x.Contender]++
		}
	}
	return shares
}

// Acquisitions returns how often the lock was acquired, by anybody.
func (h History) Acquisitions() int {
	n := 0
	for _, x := range h.Holds {
		if x.Got {
			n++
		}
	}
	return n
}
