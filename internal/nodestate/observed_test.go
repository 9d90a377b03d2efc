package nodestate

import (
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
)

// TestObservedEntriesGoOnAlike writes the entry with stamps, for an observer that sees
// each write at once. A time keeps its stamp for as long as it is the same, and has a new
// one when it is set.
func TestObservedEntriesGoOnAlike(t *testing.T) {
	kept, renewed := 0, 0
	for seed := range uint64(200) {
		ends := map[uint64]time.Time{}
		goOnAlike(t, seed, node.OpRecords, func(e Entry, now time.Time) (again Entry, err error) {
			b := e.AppendSeen(nil, &Sight{Now: now, New: func(at time.Time) uint64 {
				renewed++
				ends[uint64(renewed)] = at
				return uint64(renewed)
			}})
			err = again.DecodeSeen(b, &Sight{Now: now, Left: func(s Stamp, left time.Duration) time.Duration {
				if end, known := ends[s.Number]; !known || !end.Equal(now.Add(left)) {
					t.Fatalf("seed %d: the time with stamp %d is %v, and was set to %v", seed, s.Number, now.Add(left), end)
				}
				kept++
				return left
			}})
			return again, err
		})
	}
	if kept < 2*renewed || renewed < 10_000 {
		t.Errorf("%d times were read, %d were set: this shows too little", kept, renewed)
	}
}

// TestTimerStandsForATimeUntilThatIsSetAnew has a timer for holders, of which one is
// extended.
func TestTimerStandsForATimeUntilThatIsSetAnew(t *testing.T) {
	now := time.UnixMicro(1_700_000_000_000_000)
	share := node.Share{Mode: node.Shared}
	e := Entry{Holders: Holders{{Value: "a", Until: now.Add(time.Second), Share: share}, {Value: "b", Until: now.Add(2 * time.Second), Share: share}}}
	number := uint64(0)
	again := func(e *Entry) {
		b := e.AppendSeen(nil, &Sight{Now: now, New: func(time.Time) uint64 { number++; return number }})
		if *e = (Entry{}); e.DecodeSeen(b, &Sight{Now: now, Left: func(_ Stamp, left time.Duration) time.Duration { return left }}) != nil {
			t.Fatal("it cannot be read")
		}
	}
	if d := e.LeaveForHolders("early", now); d != 0 {
		t.Errorf("times that have no stamp have a timer, of %v", d)
	}
	again(&e)
	if d := e.LeaveForHolders("timer", now); d != 2*time.Second {
		t.Errorf("the timer must run for %v", d)
	}
	if again(&e); e.LeaveForHolders("second", now) != 0 {
		t.Error("the same times have a second timer")
	}
	e.apply(now, node.Request{Op: node.OpExtend, Value: "a", TTL: 3 * time.Second, Share: share}, true)
	again(&e)
	for i, want := range []string{"", "timer"} {
		if s, ok := StampOf(e.Holders[i].Until); !ok || s.Timer != want {
			t.Errorf("holder %d has the timer %q, want %q", i, s.Timer, want)
		}
	}
	if _, ok := StampOf(time.Now()); ok {
		t.Error("the present time has a stamp")
	}
}
