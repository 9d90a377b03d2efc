package sim

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// seeds are the seeds of a run.
func seeds(t *testing.T, from, count uint64) (uint64, uint64) {
	s := os.Getenv("REDLATCH_SEEDS")
	if s == "" {
		return from, count
	}
	if n, err := fmt.Sscanf(s, "%d:%d", &from, &count); n != 2 || err != nil || count == 0 {
		t.Fatalf("REDLATCH_SEEDS is %q: it must be FROM:COUNT, with a count above 0", s)
	}
	return from, count
}

// sum is the result of many histories.
type sum struct {
	mu         sync.Mutex
	histories  map[Climate]int
	overlaps   map[Climate]int
	operations int64
	locks      int64
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
	from, count := seeds(t, 1, 400)
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
					if f := os.Getenv("REDLATCH_FLAVOUR"); f != "" && p.Flavour != Flavour(f) {
						continue
					}
					o := Run(t, p, false)
					all.add(p, o)
					if o.Violation != "" {
						stopped.Store(true)
						t.Errorf("seed %d breaks a promise: %s", p.Seed, o.Violation)
						if os.Getenv("REDLATCH_RAW") == "" {
							report(t, p)
						}
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
	if t.Failed() {
		return
	}
	if all.least < Operations {
		t.Errorf("a history had %d operations, want %d or more", all.least, Operations)
	}
	for _, what := range wanted {
		if all.seen[what] == 0 && count >= 200 && os.Getenv("REDLATCH_FLAVOUR") == "" {
			t.Errorf("there was no %s: the histories show less than they seem to", what)
		}
	}
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

// report shrinks a plan that breaks a promise, and saves it with its trace.
func report(t *testing.T, p *Plan) {
	small := Shrink(t, p)
	var o Outcome
	for range 10 * attempts {
		if o = Run(t, small, true); o.Violation != "" {
			break
		}
	}
	text, err := json.MarshalIndent(small, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(os.TempDir(), fmt.Sprintf("redlatch-seed-%d.json", p.Seed))
	if err := os.WriteFile(file, text, 0o666); err != nil {
		t.Fatal(err)
	}
	t.Logf("shrunk to %d calls and %d faults, kept in %s\nplay it again: REDLATCH_PLAN=%[3]s go test -run TestPlanIsPlayedAgain -v ./internal/test/sim",
		len(small.Calls), len(small.Faults), file)
	lines := o.Trace
	if len(lines) > 120 {
		lines = append([]string{"…"}, lines[len(lines)-120:]...)
	}
	t.Logf("%s\n%s", o.Violation, strings.Join(lines, "\n"))
}

// TestPlanIsPlayedAgain runs the plan in the file REDLATCH_PLAN, or a plan that
// was written to a file and read again.
func TestPlanIsPlayedAgain(t *testing.T) {
	file := os.Getenv("REDLATCH_PLAN")
	if file == "" {
		file = filepath.Join(t.TempDir(), "plan.json")
		text, err := json.Marshal(wild(t))
		if err == nil {
			err = os.WriteFile(file, text, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var p Plan
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatalf("%s holds no plan: %v", file, err)
	}
	o := Run(t, &p, true)
	if os.Getenv("REDLATCH_PLAN") != "" {
		t.Logf("%s\n%s", strings.Join(o.Trace, "\n"), o.Violation)
	} else if o.Violation == "" {
		t.Error("a plan that breaks a promise does not when it has been through a file")
	}
}

// wild returns a plan that breaks a promise: its clocks run at rates that no
// assumption allows, and it is judged as if they did not.
func wild(t *testing.T) *Plan {
	for seed := uint64(1); seed < 2000; seed++ {
		p := NewPlan(seed)
		if p.Climate != BeyondRates || p.Callers > 1 {
			continue
		}
		p.Climate = Within
		if breaks(t, p) {
			return p
		}
	}
	t.Fatal("no plan breaks a promise though clocks run wild")
	return nil
}

func TestPlanIsShrunkToWhatMatters(t *testing.T) {
	p := wild(t)
	small := Shrink(t, p)
	if !breaks(t, small) {
		t.Fatal("the shrunk plan breaks nothing")
	}
	if before, after := len(p.Calls)+len(p.Faults), len(small.Calls)+len(small.Faults); after > before/2 {
		t.Errorf("of %d calls and faults %d are left", before, after)
	}
}

// TestSameSeedSameHistory runs plans twice. What several goroutines of one
// client do at exactly the same moment has no fixed order, so it uses plans in
// which each client has one caller, and accepts a few differences.
func TestSameSeedSameHistory(t *testing.T) {
	const most = 3
	same, differ := 0, 0
	for seed := uint64(1); same+differ < 100; seed++ {
		p := NewPlan(seed)
		if p.Callers > 1 {
			continue
		}
		if a, b := Run(t, p, true), Run(t, p, true); a.Digest == b.Digest {
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
