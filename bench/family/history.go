package family

import (
	"cmp"
	"slices"
	"time"

	"github.com/redlatch/redlatch/bench/stats"
)

// Request is one contender's request for a lock, and its time with it.
type Request struct {
	stats.Hold
	// Write says that it was a writer's. Requests for slots are none.
	Write bool
}

// History is what all contenders did.
type History []Request

// Between returns the part that was acquired, or waited for without success,
// from one moment to another.
func (h History) Between(from, to int64) History {
	var part History
	for _, r := range h {
		if r.Got && r.Acquired >= from && r.Acquired <= to || !r.Got && r.Called < to {
			part = append(part, r)
		}
	}
	return part
}

// Acquisitions returns how often the lock was acquired.
func (h History) Acquisitions() int {
	n := 0
	for _, r := range h {
		if r.Got {
			n++
		}
	}
	return n
}

// HandOvers returns how often the lock was acquired by a contender before which
// others had their turn: somebody else acquired it since its own last release.
// The rest are acquisitions by those who took again what they just released,
// past others that wait.
func (h History) HandOvers() int {
	holds := make([]stats.Hold, 0, len(h))
	for _, r := range h {
		if r.Got {
			holds = append(holds, r.Hold)
		}
	}
	slices.SortFunc(holds, func(a, b stats.Hold) int { return cmp.Compare(a.Acquired, b.Acquired) })
	own := map[int32]int64{} // each contender's last release
	n := 0
	for i, x := range holds {
		released, again := own[x.Contender]
		if !again || i > 0 && holds[i-1].Contender != x.Contender && holds[i-1].Acquired >= released {
			n++
		}
		own[x.Contender] = x.Released
	}
	return n
}

// Waits returns how long the requests of readers, or of writers, took. Those
// that were not served count with their wait until the time was over.
func (h History) Waits(write bool) []time.Duration {
	var waits []time.Duration
	for _, r := range h {
		if r.Write == write {
			waits = append(waits, time.Duration(r.Acquired-r.Called))
		}
	}
	return waits
}

// Held returns how long the lock was held each time.
func (h History) Held() []time.Duration {
	var times []time.Duration
	for _, r := range h {
		if r.Got {
			times = append(times, time.Duration(r.Released-r.Acquired))
		}
	}
	return times
}

// Shares returns how often each contender had the lock.
func (h History) Shares(contenders int) []int {
	shares := make([]int, contenders)
	for _, r := range h {
		if r.Got {
			shares[r.Contender]++
		}
	}
	return shares
}

// Seen is who held the lock at the same time.
type Seen struct {
	// Readers is the most holders at a moment that are no writers: of slots,
	// all of them. Writers is the most writers at a moment.
	Readers, Writers int
	// Mixed is how many holds began while one of the other kind lasted.
	Mixed int
}

// Add joins what was seen at another time.
func (s Seen) Add(other Seen) Seen {
	return Seen{max(s.Readers, other.Readers), max(s.Writers, other.Writers), s.Mixed + other.Mixed}
}

// Breaks reports whether somebody held what it must not have, of so many slots
// or, with 0, of a lock for readers and writers.
func (s Seen) Breaks(limit int) bool {
	if limit > 0 {
		return s.Readers > limit
	}
	return s.Writers > 1 || s.Mixed > 0
}

// Seen returns who held the lock at the same time. A hold lasts from the moment
// at which its contender knew that it had the lock to the moment at which it
// asked to release it: what the servers think is longer at both ends, so no
// delay of a message looks like a fault. Holds that only touch do not overlap.
func (h History) Seen() Seen {
	type edge struct {
		at    int64
		step  int // +1 for the beginning, -1 for the end
		write bool
	}
	var edges []edge
	for _, r := range h {
		if r.Got && r.Released > r.Acquired {
			edges = append(edges, edge{r.Acquired, 1, r.Write}, edge{r.Released, -1, r.Write})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.step, b.step)) })
	var seen Seen
	var readers, writers int
	for _, e := range edges {
		mine, others, most := &readers, writers, &seen.Readers
		if e.write {
			mine, others, most = &writers, readers, &seen.Writers
		}
		*mine += e.step
		*most = max(*most, *mine)
		if e.step > 0 && others > 0 {
			seen.Mixed++
		}
	}
	return seen
}

// Summary is what the rounds of a row show.
type Summary struct {
	// Rate is acquisitions a second, the median of the rounds; Rates are all.
	Rate  float64
	Rates []float64
	// HandOver is hand-overs a second, the median of the rounds; HandOvers are
	// all.
	HandOver  float64
	HandOvers []float64
	// Waits are of all requests for slots, or of readers; WriterWaits of
	// writers.
	Waits, WriterWaits stats.Summary
	Held               stats.Summary
	Jain               float64
	// Commands, ClientCPU and ServerCPU are for each acquisition, PerHandOver
	// are the commands for each hand-over.
	Commands, PerHandOver float64
	ClientCPU, ServerCPU  time.Duration
	Seen                  Seen
	Errors                int
	Error                 string
}

// Round is a measured time: what contenders did in it, and what was counted.
type Round struct {
	History    History
	Contenders int
	Length     time.Duration
	// Sent are the commands that clients sent; ClientCPU and ServerCPU what
	// the processes used.
	Sent                 int64
	ClientCPU, ServerCPU time.Duration
	Errors               int
	Error                string
}

// Sum sums up the rounds of a row.
func Sum(rounds []Round) Summary {
	var s Summary
	var reads, writes, held []time.Duration
	var shares []int
	var acquired, handed int
	var sent int64
	var client, server time.Duration
	for _, r := range rounds {
		n := r.History.Acquisitions()
		acquired += n
		s.Rates = append(s.Rates, float64(n)/r.Length.Seconds())
		m := r.History.HandOvers()
		handed += m
		s.HandOvers = append(s.HandOvers, float64(m)/r.Length.Seconds())
		reads = append(reads, r.History.Waits(false)...)
		writes = append(writes, r.History.Waits(true)...)
		held = append(held, r.History.Held()...)
		// A contender is served well if it is over all rounds.
		if shares == nil {
			shares = make([]int, r.Contenders)
		}
		for i, n := range r.History.Shares(r.Contenders) {
			shares[i] += n
		}
		sent += r.Sent
		client += r.ClientCPU
		server += r.ServerCPU
		s.Seen = s.Seen.Add(r.History.Seen())
		s.Errors += r.Errors
		if s.Error == "" {
			s.Error = r.Error
		}
	}
	s.Rate, s.HandOver = stats.Median(s.Rates), stats.Median(s.HandOvers)
	s.Waits, s.WriterWaits, s.Held = stats.Summarize(reads), stats.Summarize(writes), stats.Summarize(held)
	s.Jain = stats.Jain(shares)
	if acquired > 0 {
		s.Commands = float64(sent) / float64(acquired)
		s.PerHandOver = float64(sent) / float64(handed) // the first of all is one
		s.ClientCPU, s.ServerCPU = client/time.Duration(acquired), server/time.Duration(acquired)
	}
	return s
}
