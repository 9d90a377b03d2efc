package cell

import (
	"slices"
	"time"

	"github.com/redlatch/redlatch/bench/server"
	"github.com/redlatch/redlatch/bench/system"
)

// Settings say how much is measured, and for how long.
type Settings struct {
	Quick bool
	// Contenders and Held are the contended cells.
	Contenders []int
	Held       []time.Duration
	Nodes      []int
	// Goroutines is how many have names of their own, LeaseCount how many
	// leases are kept, Waiters how many wait for a lock that is kept.
	Goroutines, LeaseCount, Waiters int

	// PairTime is how long each contender is measured in an interleaved pair;
	// OwnRounds of OwnTime with names of their own.
	PairTime, OwnTime time.Duration
	OwnRounds         int
	// ContendTime is how long contenders contend, CrowdTime where they are
	// more than there are processes for.
	ContendTime, CrowdTime time.Duration
	WaitTime, LeaseTime    time.Duration
	// SettleTime is how long waiters have to come to rest before they are
	// counted.
	SettleTime time.Duration
}

// Full are the settings of the whole bench.
func Full() Settings {
	return Settings{
		Contenders: []int{2, 16, 128, 1000},
		Held:       []time.Duration{0, time.Millisecond},
		Nodes:      []int{1, 5},
		Goroutines: 64, LeaseCount: 10_000, Waiters: 16,
		PairTime: 3 * time.Second, OwnTime: 400 * time.Millisecond, OwnRounds: 8,
		ContendTime: 5 * time.Second, CrowdTime: 10 * time.Second,
		SettleTime: time.Second, WaitTime: 4 * time.Second, LeaseTime: 10 * time.Second,
	}
}

// Quick are the settings of a smoke run. Its numbers show that everything
// works, and not much more.
func Quick() Settings {
	return Settings{
		Quick:      true,
		Contenders: []int{16},
		Held:       []time.Duration{time.Millisecond},
		Nodes:      []int{1, 5},
		Goroutines: 64, LeaseCount: 1000, Waiters: 8,
		PairTime: 300 * time.Millisecond, OwnTime: 100 * time.Millisecond, OwnRounds: 2,
		ContendTime: 1200 * time.Millisecond, CrowdTime: 2 * time.Second,
		SettleTime: 300 * time.Millisecond, WaitTime: time.Second, LeaseTime: 4 * time.Second,
	}
}

// Plan returns the cells of a run, in the order in which they are measured:
// contenders that are compared stand beside each other.
func Plan(s Settings, systems []*system.System) []Cell {
	var cells []Cell
	add := func(kind Kind, nodes int, count int, held time.Duration) {
		for _, sys := range systems {
			if sys.TakesPart(string(kind)) && slices.Contains(sys.Nodes, nodes) && (kind != Leases || sys.Keeps) {
				cells = append(cells, Cell{Kind: kind, Count: count, Held: held, Nodes: nodes, System: sys.Key})
			}
		}
	}
	// etcd comes last in each situation, so that its servers are not there
	// while others are measured alone.
	all := append(slices.Clone(s.Nodes), server.EtcdMembers)
	for _, n := range all {
		add(Pair, n, 0, 0)
	}
	for _, n := range all {
		add(Own, n, s.Goroutines, 0)
	}
	contended := func(nodes []int) {
		for _, count := range s.Contenders {
			for _, held := range s.Held {
				for _, n := range nodes {
					add(Contended, n, count, held)
				}
			}
		}
	}
	contended(s.Nodes)
	contended([]int{server.EtcdMembers})
	for _, n := range all {
		add(Waiting, n, s.Waiters, 0)
	}
	add(FrozenPair, 5, 0, 0)
	add(FrozenContended, 5, 16, time.Millisecond)
	for _, n := range all {
		// Keeping them shows only after a third of their time to live, so a
		// quick run has fewer of these.
		if !s.Quick || n == 1 {
			add(Leases, n, s.LeaseCount, 0)
		}
	}
	return cells
}

// Duration returns about how long a cell takes, connecting and starting
// included.
func (s Settings) Duration(c Cell) time.Duration {
	processes, _ := c.Processes()
	starting := 300*time.Millisecond + time.Duration(processes)*25*time.Millisecond
	switch c.Kind {
	case Pair, FrozenPair:
		return s.PairTime + 200*time.Millisecond
	case Own:
		return time.Duration(s.OwnRounds)*s.OwnTime + 200*time.Millisecond
	case Contended, FrozenContended:
		return s.ContendFor(c) + starting
	case Waiting:
		return s.WaitTime + s.SettleTime + starting
	case Leases:
		return s.LeaseTime + 2*time.Second
	}
	return 0
}

// ContendFor returns how long the contenders of a cell contend.
func (s Settings) ContendFor(c Cell) time.Duration {
	if _, threads := c.Processes(); threads > 1 {
		return s.CrowdTime
	}
	return s.ContendTime
}

// Batch is cells that are measured together.
type Batch []Cell

// Batches puts cells together that are measured in turns. Contenders with
// another store join those beside whom they stand.
func Batches(cells []Cell) []Batch {
	var batches []Batch
	for _, c := range cells {
		if n := len(batches); n > 0 && c.Kind.Interleaved() {
			last := batches[n-1]
			first := last[0]
			if first.Kind == c.Kind && first.Count == c.Count && (first.Nodes == c.Nodes || c.System == "etcd") {
				batches[n-1] = append(last, c)
				continue
			}
		}
		batches = append(batches, Batch{c})
	}
	return batches
}
