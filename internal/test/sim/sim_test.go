package sim

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/check"
)

// sum is the result of many histories.
type sum struct {
	mu         sync.Mutex
	histories  map[Climate]int
	overlaps   map[Climate]int
	operations int64
	locks      int
	least      int64
	seen       map[string]int
}

func (s *sum) add(p *Plan, o Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.histories[p.Climate]++
	s.overlaps[p.Climate] += o.Overlaps
	s.operations += o.Operations
	s.locks += o.Locks
	for what, n := range o.Seen {
		s.seen[what] += n
	}
	if s.least == 0 || o.Operations < s.least {
		s.least = o.Operations
	}
}

// TestNoHistoryBreaksAPromise runs histories from seeds, each in virtual time,
// on all processors. REDLATCH_SEEDS=FROM:COUNT runs others; make sim does.
func TestNoHistoryBreaksAPromise(t *testing.T) {
	all, count := histories(t, 200, func(*Plan) bool { return true })
	if t.Failed() {
		return
	}
	if all.least < Operations {
		t.Errorf("a history had %d operations, want %d or more", all.least, Operations)
	}
	for _, what := range []string{
		"reader beside another", "three readers at once", "reader beside a writer that was downgraded",
		"slot beside another", "name with all slots held", "downgrade",
		"request that was sent again",
	} {
		if all.seen[what] == 0 && count >= 200 {
			t.Errorf("there was no %s: the histories show less than they seem to", what)
		}
	}
}

// TestNoHistoryOfNodesWithoutAClockBreaksAPromise has some nodes, or all, be stores
// without a clock, which clients observe. About one seed in five is such a history.
func TestNoHistoryOfNodesWithoutAClockBreaksAPromise(t *testing.T) {
	if all, _ := histories(t, 300, (*Plan).observe); !t.Failed() && all.least < Operations {
		t.Errorf("a history had %d operations, want %d or more", all.least, Operations)
	}
}

// histories runs the histories of seeds whose plan is wanted.
func histories(t *testing.T, count uint64, wanted func(*Plan) bool) (*sum, uint64) {
	from, count := check.Seeds(t, 1, count)
	var (
		next    atomic.Uint64
		all     = sum{histories: map[Climate]int{}, overlaps: map[Climate]int{}, seen: map[string]int{}}
		began   = time.Now()
		stopped atomic.Bool
		shown   atomic.Int64
	)
	t.Run("histories", func(t *testing.T) {
		for range runtime.GOMAXPROCS(0) {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				for !stopped.Load() {
					n := next.Add(1) - 1
					if n >= count {
						return
					}
					p := NewPlan(from + n)
					if !wanted(p) {
						continue
					}
					o := Run(t, p, false)
					all.add(p, o)
					if o.Violation != "" {
						stopped.Store(true)
						t.Errorf("seed %d breaks a promise: %s", p.Seed, o.Violation)
						report(t, p)
						return
					}
					progress(count, n+1, began, &shown)
				}
			})
		}
	})
	t.Logf("seeds %d to %d: %d operations, %d locks, at least %d operations a history, in %v",
		from, from+count-1, all.operations, all.locks, all.least, time.Since(began).Round(time.Millisecond))
	t.Logf("  %v", all.seen)
	for c, n := range all.histories {
		t.Logf("  %-16s %7d histories, %6d times two leases at once", c, n, all.overlaps[c])
	}
	return &all, count
}

// TestJudgeSeesTwoHolders judges histories that no promise covers, until the
// judge has seen two leases at once in each kind: a judge that cannot see them
// would accept anything.
func TestJudgeSeesTwoHolders(t *testing.T) {
	for _, c := range []Climate{BeyondRates, BeyondSteps, BeyondMemory} {
		t.Run(string(c), func(t *testing.T) {
			t.Parallel()
			seen := 0
			for seed := uint64(1); seen < 400; seed++ {
				p := NewPlan(seed)
				if p.Climate != c {
					continue
				}
				seen++
				if Run(t, p, false).Overlaps > 0 {
					t.Logf("seed %d, the %dth of them", seed, seen)
					return
				}
			}
			t.Errorf("%d histories, and never two leases at once", seen)
		})
	}
}

// progress reports every half minute how far a long run is.
func progress(count, done uint64, began time.Time, shown *atomic.Int64) {
	if took := time.Since(began); count > 5000 && int64(took/(30*time.Second)) > shown.Load() {
		shown.Store(int64(took / (30 * time.Second)))
		left := time.Duration(float64(took) / float64(done) * float64(count-done))
		fmt.Fprintf(os.Stderr, "%d of %d histories, %v to go\n", done, count, left.Round(time.Second))
	}
}

// report runs a history that breaks a promise once more, and shows the end of it.
// What several goroutines of one client do at exactly the same moment has no
// fixed order, so that it may take a few runs to see it again.
func report(t *testing.T, p *Plan) {
	for range 4 {
		if o := Run(t, p, true); o.Violation != "" {
			lines := o.Trace[max(0, len(o.Trace)-120):]
			t.Logf("REDLATCH_SEEDS=%d:1 go test -run %s -v ./internal/test/sim\n%s", p.Seed, strings.Split(t.Name(), "/")[0], strings.Join(lines, "\n"))
			return
		}
	}
}

// TestSameSeedSameHistory runs plans twice. What several goroutines of one
// client do at exactly the same moment has no fixed order, so it uses plans in
// which each client has one caller, and accepts a few differences.
func TestSameSeedSameHistory(t *testing.T) {
	const most = 1
	same, differ := 0, 0
	for seed := uint64(1); same+differ < 40; seed++ {
		p := NewPlan(seed)
		if p.Callers > 1 {
			continue
		}
		if a, b := Run(t, p, true), Run(t, p, true); slices.Equal(a.Trace, b.Trace) {
			same++
		} else {
			differ++
			for i := range min(len(a.Trace), len(b.Trace)) {
				if a.Trace[i] != b.Trace[i] {
					t.Logf("seed %d differs from line %d on:\n%s\n%s", seed, i, a.Trace[i], b.Trace[i])
					break
				}
			}
		}
	}
	if differ > most {
		t.Errorf("%d of %d histories differ from themselves, want %d at the most", differ, same+differ, most)
	}
}
