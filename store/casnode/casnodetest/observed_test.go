package casnodetest

import (
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/clockless"
	"github.com/redlatch/redlatch/store/casnode"
)

// clocklessHarness has stores in memory without a clock, with timers and places.
func clocklessHarness(damage clockless.Damage) Harness {
	shelf := func() *clockless.Shelf {
		s := clockless.New(nil)
		s.Damage = damage
		return s
	}
	return Harness{
		Open: func(testing.TB) (a, b casnode.Store) {
			on := shelf()
			return placed(on), placed(on)
		},
		Apart: func(testing.TB) (a, b casnode.Store) {
			return placed(shelf()), placed(shelf())
		},
		Sweeps: true, Hears: true, Places: true, Observed: true, Timers: true,
	}
}

func placed(on *clockless.Shelf) casnode.Store {
	return clockless.Placed{Timed: clockless.Timed{Store: on.Open()}}
}

// TestConformanceOfAStoreWithoutAClock runs the suite in real time.
func TestConformanceOfAStoreWithoutAClock(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for fifteen seconds")
	}
	Run(t, clocklessHarness(clockless.None))
}

// TestConformanceOfAStoreWithoutTimers runs it on a clock that the test moves, by
// which the nodes count. Its queues are in the rows.
func TestConformanceOfAStoreWithoutTimers(t *testing.T) {
	clock, advance := manualClock()
	start := clock()
	uptime := func() time.Duration { return clock().Sub(start) }
	open := func(testing.TB) (a, b casnode.Store) {
		on := clockless.New(uptime)
		return on.Open(), on.Open()
	}
	Run(t, Harness{
		Open: open, Node: awake(open, &casnode.Options{Uptime: uptime}),
		Sweeps: true, Hears: true, Observed: true, Advance: advance,
	})
}

func TestEveryStoreWithoutAClockThatIsBrokenFails(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for four seconds")
	}
	t.Parallel()
	for _, m := range []struct {
		damage clockless.Damage
		claim  string // that must fail
	}{
		{clockless.InsertsAnyFloor, "an insert is refused if the floor has risen"},
		{clockless.FloorFalls, "the floor rises with a removal, and never falls"},
		{clockless.FloorStays, "the floor rises with a removal, and never falls"},
		{clockless.ShortTimers, "a timer runs for as long as it must, and then is gone"},
		{clockless.EndlessTimers, "a timer runs for as long as it must, and then is gone"},
		{clockless.SharedTimers, "a timer belongs to one row"},
		{clockless.TimersFirst, "a row and its timers are of one moment"},
		{clockless.DropsAll, "timers are dropped one by one"},
		{clockless.LosesTimers, "a timer runs though its client is closed"},
		{clockless.ForgetsFences, "a store without a clock keeps fences"},
	} {
		h := clocklessHarness(m.damage)
		found := false
		for _, c := range claims(h) {
			if c.name != m.claim {
				continue
			}
			found = true
			// A claim about one moment needs a write at that moment.
			missed := 0
			for ; missed < 20 && !failsOn(c, h); missed++ {
			}
			if missed == 20 {
				t.Errorf("damage %d: %q holds", m.damage, c.name)
			}
			if failsOn(c, clocklessHarness(clockless.None)) {
				t.Errorf("%q fails on a store that is not broken", c.name)
			}
		}
		if !found {
			t.Errorf("there is no claim %q", m.claim)
		}
	}
}
