package nodestate

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
)

// TestObservedEntriesGoOnAlike executes random requests on an entry, and on one that is
// written with stamps and read after each of them, by an observer that sees each write
// at once. Both answer alike. A time keeps its stamp for as long as it is the same, and
// has a new one when it is set.
func TestObservedEntriesGoOnAlike(t *testing.T) {
	kept, renewed := 0, 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		now := time.UnixMicro(1_700_000_000_000_000).UTC()
		var plain, stored Entry
		ends := map[uint64]time.Time{}
		last := uint64(0)
		for range 100 {
			now = now.Add(time.Duration(r.IntN(200_000)) * time.Microsecond)
			req := node.Request{
				Op: node.Op(1 + r.IntN(int(node.OpRecords))), Value: string(rune('a' + r.IntN(5))), TTL: time.Duration(1+r.IntN(1000)) * time.Millisecond,
				Token: node.Token(now.UnixMicro() + int64(r.IntN(1000))), Window: time.Second, Retention: time.Second,
				NoRepair: time.Duration(r.IntN(2)) * time.Second, Keep: time.Duration(r.IntN(2)) * 300 * time.Millisecond,
				Wait: r.IntN(2) == 0, Ticket: now.UnixMicro() - int64(r.IntN(1000)), Occurrence: string(rune('0' + r.IntN(3))),
				Share: []node.Share{{}, {Mode: node.Shared}, {Mode: node.Slotted, Slots: 3}}[r.IntN(3)],
			}
			if req.Op == node.OpMark {
				continue
			}
			want, wakes := plain.apply(now, req, true, origin{})
			got, sameWakes := stored.apply(now, req, true, origin{})
			for _, r := range []*node.Reply{&want, &got} {
				if m := r.Memory; m != nil {
					m.Begun, m.Since = m.Begun.UTC(), m.Since.UTC()
				}
			}
			if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(sameWakes, wakes) {
				t.Fatalf("seed %d: %v of %q: %+v, want %+v", seed, req.Op, req.Value, got, want)
			}
			b := stored.AppendSeen(nil, &Sight{Now: now, New: func(at time.Time) uint64 {
				last++
				ends[last] = at
				renewed++
				return last
			}})
			stored = Entry{}
			err := stored.DecodeSeen(b, &Sight{Now: now, Left: func(s Stamp, left time.Duration) time.Duration {
				if end, known := ends[s.Number]; !known || !end.Equal(now.Add(left)) {
					t.Fatalf("seed %d: %v: the time with stamp %d is %v, and was set to %v", seed, req.Op, s.Number, now.Add(left), end)
				}
				kept++
				return left
			}})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
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
	e := Entry{Holders: node.Holders{{Value: "a", Until: now.Add(time.Second), Share: share}, {Value: "b", Until: now.Add(2 * time.Second), Share: share}}}
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
	e.apply(now, node.Request{Op: node.OpExtend, Value: "a", TTL: 3 * time.Second, Share: share}, true, origin{})
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
