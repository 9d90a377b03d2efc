package casnode_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/clockless"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/casnode"
)

// calm is a world in which nobody is stopped.
func calm(t testing.TB, timed bool) *world {
	w := newWorld(t, 1, timed)
	w.depth = 9
	return w
}

// ask asks for a lock without waiting.
func (w *world) ask(p *proc, op node.Op, value string, ttl time.Duration) node.Reply {
	return w.do(p, node.Request{Op: op, Name: "job", Value: value, TTL: ttl})
}

// expect fails unless the reply is the one wanted.
func (w *world) expect(want node.Status, r node.Reply) {
	w.t.Helper()
	if r.Status != want {
		w.fail("%v, want %v", r.Status, want)
	}
}

// TestWallClocksDecideNothing has processes that began at different times, so that
// their clocks show times that are far apart.
func TestWallClocksDecideNothing(t *testing.T) {
	w := calm(t, false)
	a := w.start()
	w.now += time.Hour
	b := w.start()
	for i, p := range []struct{ holder, other *proc }{{b, a}, {a, b}} { // an hour behind, and ahead
		one, two := fmt.Sprint("one ", i), fmt.Sprint("two ", i)
		w.expect(node.Granted, w.ask(p.holder, node.OpAcquire, one, time.Second))
		w.expect(node.Held, w.ask(p.other, node.OpAcquire, two, time.Second))
		w.now += 500 * time.Millisecond
		w.expect(node.Held, w.ask(p.other, node.OpAcquire, two, time.Second))
		w.now += 600 * time.Millisecond
		w.expect(node.Granted, w.ask(p.other, node.OpAcquire, two, time.Second))
		w.expect(node.Granted, w.ask(p.other, node.OpRelease, two, 0))
	}
}

// TestWrongWallClockDoesNotDecideWhoIsNext has callers wait whose tickets are by wall
// clocks that are hours apart. Within the window the tickets decide.
func TestWrongWallClockDoesNotDecideWhoIsNext(t *testing.T) {
	w := calm(t, false)
	w.expect(node.Granted, w.ask(w.start(), node.OpAcquire, "holder", time.Minute))
	for _, c := range []struct {
		off  time.Duration
		want int
	}{{26 * time.Hour, 1}, {0, 2}, {-5 * time.Hour, 3}, {26*time.Hour - 5*time.Second, 1}, {3 * time.Hour, 5}, {27 * time.Hour, 6}} {
		req := node.Request{Op: node.OpAcquire, Name: "job", Value: fmt.Sprint(c.off), TTL: time.Minute, Fencing: node.Fencing{Window: 10 * time.Second}, Waiting: node.Waiting{Wait: true, Ticket: w.base + w.now.Microseconds() + c.off.Microseconds()}}
		for range 2 { // it asks again, and keeps its place
			if r, err := w.start().node.Do(t.Context(), req); err != nil || r.Rank != c.want {
				t.Errorf("%v: rank %d, %v, want %d", c.off, r.Rank, err, c.want)
			}
		}
	}
}

// TestCallersThatDoNotStayGetALockOfACrashedHolder has a process for each try. One of
// them gets the lock when the time is over that was left at the first try.
func TestCallersThatDoNotStayGetALockOfACrashedHolder(t *testing.T) {
	const ttl = 30 * time.Second
	tryFor := func(timed bool) (took time.Duration, tries int) {
		w := calm(t, timed)
		w.expect(node.Granted, w.ask(w.start(), node.OpAcquire, "crashed", ttl))
		began := w.now
		for tries = 1; ; tries++ {
			r := w.ask(w.start(), node.OpAcquire, fmt.Sprint("try ", tries), ttl)
			if r.Status == node.Granted || w.now-began > 10*ttl {
				return w.now - began, tries
			}
			w.now += 10 * time.Second
		}
	}
	if took, tries := tryFor(true); took < ttl || took > ttl+11*time.Second {
		t.Errorf("with timers it took %v, %d tries", took, tries)
	}
	if took, _ := tryFor(false); took < 10*ttl {
		t.Errorf("without timers it took %v: the test shows nothing about timers", took)
	}
}

// TestCrashedWaitersOfACrashedHolderDelayNobodyWhoDoesNotStay has waiters crash with the
// holder. Callers that do not stay get the lock at the first try 3 s after the time that
// was left; if they try rarely, and several waiters crashed, at the one after that.
func TestCrashedWaitersOfACrashedHolderDelayNobodyWhoDoesNotStay(t *testing.T) {
	const ttl = 10 * time.Second
	for _, c := range []struct {
		waiters int
		every   time.Duration
		tries   int
	}{{1, time.Second, 14}, {60, time.Second, 14}, {1, time.Minute, 2}, {60, time.Minute, 3}} {
		w := calm(t, true)
		w.expect(node.Granted, w.ask(w.start(), node.OpAcquire, "crashed", ttl))
		for i := range c.waiters {
			w.expect(node.Held, w.do(w.start(), node.Request{Op: node.OpAcquire, Name: "job", Value: fmt.Sprint("waiter ", i), TTL: ttl, Waiting: node.Waiting{Wait: true, Ticket: int64(i + 1)}}))
		}
		tries := 1
		for ; w.ask(w.start(), node.OpAcquire, fmt.Sprint("try ", tries), ttl).Status != node.Granted && tries < 100; tries++ {
			w.now += c.every
		}
		if tries > c.tries {
			t.Errorf("%d waiters crashed: try %d got the lock, one each %v, want try %d at the latest", c.waiters, tries, c.every, c.tries)
		}
	}
}

// marked returns a world with a node in quarantine, and what asks for a lock there.
func marked(t *testing.T, timed bool) (w *world, stays *proc, ask func(p *proc, name string) node.Status) {
	guard := node.Guard{Membership: "0123456789abcdef", MaxTTL: time.Minute, Window: time.Second, Quarantine: time.Minute}
	w = calm(t, timed)
	stays = w.start()
	if r, err := stays.node.Mark(t.Context(), node.MarkRequest{Mark: node.MarkWrite, Guard: &guard}); err != nil || r.Status != node.Quarantined {
		t.Fatalf("marked: %v, %v", r.Status, err)
	}
	return w, stays, func(p *proc, name string) node.Status {
		return w.do(p, node.Request{Op: node.OpAcquire, Name: name, Value: "one", TTL: time.Second, Guard: &guard}).Status
	}
}

// TestQuarantineEndsWhereNobodyStays has callers that do not stay.
func TestQuarantineEndsWhereNobodyStays(t *testing.T) {
	w, _, ask := marked(t, true)
	for ask(w.start(), "job") != node.Granted {
		if w.now += 5 * time.Second; w.now > 5*time.Minute {
			t.Fatalf("quarantined after %v", w.now)
		}
	}
	if w.now < 59*time.Second {
		t.Errorf("the quarantine ended after %v", w.now)
	}
}

// TestQuarantineThatOneHasObservedIsOverForAll has a process that stays. Those that come
// later need not count anew, though the store has no timers.
func TestQuarantineThatOneHasObservedIsOverForAll(t *testing.T) {
	w, p, ask := marked(t, false)
	if w.now += 30 * time.Second; ask(w.start(), "a") != node.Quarantined || ask(p, "a") != node.Quarantined {
		t.Fatal("half of the quarantine is enough")
	}
	if w.now += 31 * time.Second; ask(w.start(), "a") != node.Quarantined || ask(p, "a") != node.Granted {
		t.Fatal("the quarantine is not over for the one that has observed it, or over for another")
	}
	if ask(w.start(), "b") != node.Granted {
		t.Error("the quarantine begins anew for each process")
	}
}

// TestTimerIsDroppedAfterTheWriteThatSetsItsTimeAnew has others ask while an extension
// is between its read and its write, and after it.
func TestTimerIsDroppedAfterTheWriteThatSetsItsTimeAnew(t *testing.T) {
	w := calm(t, true)
	a := w.start()
	w.expect(node.Granted, w.ask(a, node.OpAcquire, "one", 10*time.Second))
	others := func() { w.expect(node.Held, w.ask(w.start(), node.OpAcquire, "two", 10*time.Second)) }
	others()
	if n := w.shelf.Running(); n != 1 {
		t.Fatalf("%d timers run", n)
	}
	w.now += 5 * time.Second
	a.between = others
	w.expect(node.Granted, w.ask(a, node.OpExtend, "one", 10*time.Second))
	w.now += 7 * time.Second // the timer would have run out
	others()
}

// TestOneTimerIsLeftForATime counts timers: the second caller finds the first one's.
// Where nobody is refused there is none.
func TestOneTimerIsLeftForATime(t *testing.T) {
	w := calm(t, true)
	a := w.start()
	for range 10 {
		w.expect(node.Granted, w.ask(a, node.OpAcquire, "one", 10*time.Second))
		w.expect(node.Granted, w.ask(a, node.OpExtend, "one", 10*time.Second))
		w.expect(node.Granted, w.ask(a, node.OpRelease, "one", 0))
	}
	if n := a.node.Timers(); n != 0 {
		t.Errorf("%d timers were left where nobody contends", n)
	}
	w.expect(node.Granted, w.ask(a, node.OpAcquire, "one", 10*time.Second))
	left := int64(0)
	for range 10 {
		p := w.start()
		w.expect(node.Held, w.ask(p, node.OpAcquire, "two", 10*time.Second))
		left += p.node.Timers()
	}
	if left != 1 {
		t.Errorf("%d timers were left for one lock", left)
	}
}

// limited is a store whose timers are too short.
type limited struct{ clockless.Timed }

func (limited) StartTimer(context.Context, string, string, time.Duration) (bool, error) {
	return false, nil
}

// TestTimerThatCannotBeStartedIsNotReferredTo has a store without timers of that
// length. The lock stays held.
func TestTimerThatCannotBeStartedIsNotReferredTo(t *testing.T) {
	w := calm(t, true)
	w.expect(node.Granted, w.ask(w.start(), node.OpAcquire, "one", 10*time.Second))
	for range 3 {
		p := w.start()
		p.node = casnode.New(limited{clockless.Timed{Store: w.shelf.Open()}}, &casnode.Options{Poll: true, Uptime: func() time.Duration { return w.now - p.born }})
		w.expect(node.Held, w.ask(p, node.OpAcquire, "two", 10*time.Second))
		w.expect(node.Held, w.ask(w.start(), node.OpInspect, "", 0))
	}
}

// occurrences is a world of processes that complete an occurrence each, and end.
type occurrences struct{ *world }

func (w occurrences) name(i int) string { return fmt.Sprintf("occurrence %06d", i) }

// record has a new process send a request about records.
func (w occurrences) record(op node.Op, occurrence string) node.RecordsReply {
	w.t.Helper()
	return w.records(w.start(), node.RecordsRequest{Op: op, Occurrence: occurrence})
}

func (w occurrences) records(p *proc, req node.RecordsRequest) node.RecordsReply {
	w.t.Helper()
	w.procs = nil
	req.Name, req.Retention = "job", 7*24*time.Hour
	r, err := p.node.Records(w.t.Context(), req)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// complete has an occurrence be completed that was not before, and checks that the last
// ones are remembered, and not too many.
func (w occurrences) complete(i, remembered, most int) {
	w.t.Helper()
	if r := w.record(node.OpCheck, w.name(i)); r.Status != node.Absent {
		w.t.Fatalf("occurrence %d: %v", i, r.Status)
	}
	count := w.record(node.OpComplete, w.name(i)).Count - 1 // before one is forgotten
	_, size := w.shelf.Rows()
	if count > most || size > 60*most {
		w.t.Fatalf("%d records, a row of %d bytes; want %d records at most", count, size, most)
	}
	if i%50 != 0 {
		return
	}
	for back := range min(i, remembered) {
		if r := w.record(node.OpCheck, w.name(i-back)); r.Status != node.Granted {
			w.t.Fatalf("occurrence %d is forgotten after %d others", i-back, back)
		}
	}
}

// TestOccurrencesOfManyProcessesEndByTimers has 10,000 occurrences completed, each by a
// process that ends.
func TestOccurrencesOfManyProcessesEndByTimers(t *testing.T) {
	if testing.Short() {
		t.Skip("ten thousand processes take some seconds")
	}
	w := occurrences{calm(t, true)}
	for i := range 10_000 {
		w.complete(i, 14, 14+2*64+1) // those of seven days, and some for which no timer ran yet
		w.now += 12 * time.Hour
	}
}

// TestOccurrencesOfManyProcessesAreLimitedInNumber does so without timers, after a
// thousand.
func TestOccurrencesOfManyProcessesAreLimitedInNumber(t *testing.T) {
	w := occurrences{calm(t, false)}
	p := w.start()
	adopt := node.RecordsRequest{Op: node.OpAdopt, Begun: w.records(p, node.RecordsRequest{Op: node.OpCheck, Occurrence: w.name(0)}).Begun}
	for i := range node.MaxRecords {
		adopt.Records = append(adopt.Records, node.Record{Occurrence: w.name(i), Left: 24*time.Hour + time.Duration(i)*time.Second})
	}
	if r := w.records(p, adopt); r.Status != node.Granted {
		t.Fatal(r.Status)
	}
	for i := range 60 {
		w.complete(node.MaxRecords+i, 50, 1000)
		w.now += time.Hour
	}
}

// TestRowsOfManyNamesAreFewWhereNobodyStays has a process for each of many names.
func TestRowsOfManyNamesAreFewWhereNobodyStays(t *testing.T) {
	w := calm(t, false)
	last := node.Token(0)
	for i := range 3000 {
		p := w.start()
		w.procs = nil
		token := node.Token(w.base + w.now.Microseconds())
		req := node.Request{Name: fmt.Sprint("order ", i), Value: "one", TTL: time.Second, Fencing: node.Fencing{Token: token, Window: window, Retention: time.Hour}}
		for _, req.Op = range []node.Op{node.OpAcquire, node.OpRelease} {
			if r, err := p.node.Do(t.Context(), req); err != nil || r.Status != node.Granted {
				t.Fatal(r.Status, err)
			}
		}
		last = token
		w.now += 10 * time.Millisecond
	}
	rows, _ := w.shelf.Rows()
	if t.Log(rows, "rows"); rows > 1500 {
		t.Errorf("%d rows are left of 3000 names", rows)
	}
	// A name whose row is gone has the floor: no token goes back.
	w.expect(node.Stale, w.do(w.start(), node.Request{Op: node.OpAcquire, Name: "order 0", Value: "two", TTL: time.Second, Fencing: node.Fencing{Token: last - node.Token(20*time.Second.Microseconds())}}))
}

// TestSweepsRemoveOnlyWhatIsOver has a process sweep again and again while a lock is
// extended by another, and then is not.
func TestSweepsRemoveOnlyWhatIsOver(t *testing.T) {
	w := calm(t, false)
	a, b := w.start(), w.start()
	sweep := func() int {
		if err := b.node.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		rows, _ := w.shelf.Rows()
		return rows
	}
	w.expect(node.Granted, w.ask(a, node.OpAcquire, "one", 10*time.Second))
	for range 20 {
		w.now += 6 * time.Second
		if sweep() != 1 {
			w.fail("the row of a lock was removed")
		}
		w.expect(node.Granted, w.ask(a, node.OpExtend, "one", 10*time.Second))
	}
	sweep()
	w.now += 6 * time.Second
	if sweep() != 1 {
		w.fail("the row of a lock was removed after 6 of 10 s")
	}
	w.now += 5 * time.Second
	if sweep() != 0 {
		w.fail("the row is there after 11 of 10 s")
	}
}

// TestFenceFarAheadIsNotFolded has a token of a clock that ran away: its row stays, so
// that the tokens of other names do not follow it.
func TestFenceFarAheadIsNotFolded(t *testing.T) {
	w := calm(t, false)
	p := w.start()
	far := node.Token(w.base + (50 * time.Hour).Microseconds())
	req := node.Request{Op: node.OpAcquire, Name: "job", Value: "one", TTL: time.Second, Fencing: node.Fencing{Token: far}}
	w.expect(node.Granted, w.do(p, req))
	for range 3 {
		w.now += time.Hour
		if err := p.node.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if rows, _ := w.shelf.Rows(); rows != 1 {
		t.Errorf("%d rows are left", rows)
	}
	w.expect(node.Granted, w.do(p, node.Request{Op: node.OpAcquire, Name: "other", Value: "one", TTL: time.Second, Fencing: node.Fencing{Token: node.Token(w.base)}}))
}
