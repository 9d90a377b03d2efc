package cell

import (
	"fmt"
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
	// Goroutines is how many have names of their own, LeaseCount how many
	// leases are kept, Waiters how many wait for a lock that is held.
	Goroutines, LeaseCount, Waiters int

	// PairTime is how long each contender is measured in an interleaved pair;
	// OwnRounds of OwnTime with names of their own.
	PairTime, OwnTime time.Duration
	OwnRounds         int
	// ContendTime is how long contenders contend, CrowdTime where several
	// share a process.
	ContendTime, CrowdTime time.Duration
	WaitTime, LeaseTime    time.Duration
	// SettleTime is how long waiters wait before they are measured.
	SettleTime time.Duration
}

// Full are the settings of the whole bench.
func Full() Settings {
	return Settings{
		Contenders: []int{16, 128, 1000},
		Held:       []time.Duration{0, time.Millisecond},
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
		Goroutines: 64, LeaseCount: 1000, Waiters: 8,
		PairTime: 300 * time.Millisecond, OwnTime: 100 * time.Millisecond, OwnRounds: 2,
		ContendTime: 1200 * time.Millisecond, CrowdTime: 2 * time.Second,
		SettleTime: 300 * time.Millisecond, WaitTime: time.Second, LeaseTime: 4 * time.Second,
	}
}

// Plan returns the cells of a run, in the order in which they are measured:
// contenders that are compared follow each other.
func Plan(s Settings) []Cell {
	var cells []Cell
	add := func(kind Kind, nodes int, count int, held time.Duration) {
		for _, sys := range system.All {
			if (sys.Cells == nil && kind != Scripts || slices.Contains(sys.Cells, string(kind))) &&
				slices.Contains(sys.Nodes, nodes) && (kind != Leases || sys.Keeps) && (sys.Most == 0 || count <= sys.Most) {
				cells = append(cells, Cell{kind, count, held, nodes, sys})
			}
		}
	}
	// etcd comes last in each situation: its servers do not run while others
	// are measured alone.
	redis, all := []int{1, 5}, []int{1, 5, server.EtcdMembers}
	for _, n := range all {
		add(Pair, n, 0, 0)
	}
	for _, n := range redis {
		add(Scripts, n, 0, 0)
	}
	for _, n := range all {
		add(Own, n, s.Goroutines, 0)
	}
	for _, nodes := range [][]int{redis, {server.EtcdMembers}} {
		for _, count := range s.Contenders {
			for _, held := range s.Held {
				for _, n := range nodes {
					add(Contended, n, count, held)
				}
			}
		}
	}
	for _, n := range all {
		add(Waiting, n, s.Waiters, 0)
	}
	add(FrozenPair, 5, 0, 0)
	add(FrozenContended, 5, 16, time.Millisecond)
	for _, n := range redis {
		add(LinkedPair, n, 0, 0)
	}
	add(LinkedContended, 5, 16, time.Millisecond)
	add(SlowPair, 5, 0, 0)
	add(SlowContended, 5, 16, time.Millisecond)
	add(LossyPair, 5, 0, 0)
	for _, n := range all {
		// What keeping costs shows only after a third of a TTL, so a quick run
		// has fewer of these.
		if !s.Quick || n == 1 {
			add(Leases, n, s.LeaseCount, 0)
		}
	}
	return cells
}

// PlanDatabases returns the cells of a run on databases.
func PlanDatabases(s Settings) []Cell {
	var cells []Cell
	for _, store := range []system.Store{system.Postgres, system.MariaDB} {
		for _, c := range []Cell{{Kind: Pair}, {Kind: Contended, Count: 16, Held: time.Millisecond}, {Kind: Waiting, Count: s.Waiters}} {
			for _, sys := range system.Databases {
				if sys.Store == store {
					c.Nodes, c.System = 1, sys
					cells = append(cells, c)
				}
			}
		}
	}
	return cells
}

// Find returns the cell of a whole or a quick run that has the id.
func Find(id string) (Cell, error) {
	for _, c := range slices.Concat(Plan(Full()), Plan(Quick()), PlanDatabases(Full()), PlanDatabases(Quick())) {
		if c.ID() == id {
			return c, nil
		}
	}
	return Cell{}, fmt.Errorf("no cell %q; -list shows them", id)
}

// Duration returns about how long a cell takes, with connecting and starting.
func (s Settings) Duration(c Cell) time.Duration {
	processes, _ := c.Processes()
	starting := 300*time.Millisecond + time.Duration(processes)*25*time.Millisecond
	switch {
	case c.Kind.Pairs():
		return s.PairTime + 200*time.Millisecond
	case c.Kind == Own:
		return time.Duration(s.OwnRounds)*s.OwnTime + 200*time.Millisecond
	case c.Kind.Contends():
		return s.ContendFor(c) + starting
	case c.Kind == Waiting:
		return s.WaitTime + s.SettleTime + starting
	}
	return s.LeaseTime + 2*time.Second
}

// ContendFor returns how long the contenders of a cell contend.
func (s Settings) ContendFor(c Cell) time.Duration {
	if _, threads := c.Processes(); threads > 1 {
		return s.CrowdTime
	}
	return s.ContendTime
}

// Batches groups the cells that are measured together. etcd, whose number of
// servers is its own, joins the contenders before it. Databases of two kinds are
// not compared.
func Batches(cells []Cell) [][]Cell {
	var batches [][]Cell
	for _, c := range cells {
		if n := len(batches); n > 0 && c.Kind.Interleaved() {
			first := batches[n-1][0]
			if first.Kind == c.Kind && first.Count == c.Count &&
				(c.System.Store == system.Etcd || first.Nodes == c.Nodes && first.System.Store == c.System.Store) {
				batches[n-1] = append(batches[n-1], c)
				continue
			}
		}
		batches = append(batches, []Cell{c})
	}
	return batches
}
