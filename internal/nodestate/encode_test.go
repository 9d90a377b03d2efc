package nodestate

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
)

// TestStoredEntriesGoOnAlike executes random requests on an entry, and on one that is
// written and read after each of them. Both answer alike.
func TestStoredEntriesGoOnAlike(t *testing.T) {
	for seed := range uint64(200) {
		goOnAlike(t, seed, node.OpAdopt, func(e Entry, _ time.Time) (Entry, error) {
			b := e.AppendTo(nil)
			again, err := DecodeEntry(b)
			if err == nil && string(again.AppendTo(nil)) != string(b) {
				err = errors.New("it is written in another way")
			}
			return again, err
		})
	}
}

// goOnAlike executes random requests, of the operations up to the last one, on an entry
// and on one that goes through store after each of them.
func goOnAlike(t *testing.T, seed uint64, last node.Op, store func(e Entry, now time.Time) (Entry, error)) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	now := time.UnixMicro(1_700_000_000_000_000).UTC()
	var plain, stored Entry
	for range 100 {
		now = now.Add(time.Duration(r.IntN(200_000)) * time.Microsecond)
		req := node.Request{
			Op: node.Op(1 + r.IntN(int(last))), Value: string(rune('a' + r.IntN(5))), TTL: time.Duration(1+r.IntN(1000)) * time.Millisecond,
			Fencing: node.Fencing{Token: node.Token(now.UnixMicro() + int64(r.IntN(1000))), Window: time.Second, Retention: time.Second}, Parting: node.Parting{NoRepair: time.Duration(r.IntN(2)) * time.Second, Keep: time.Duration(r.IntN(2)) * 300 * time.Millisecond}, Waiting: node.Waiting{Wait: r.IntN(2) == 0, Ticket: now.UnixMicro() - int64(r.IntN(1000))}, Share: []node.Share{{}, {Mode: node.Shared}, {Mode: node.Slotted, Slots: 3}}[r.IntN(3)],
		}
		if req.Op == node.OpMark {
			continue
		}
		record := node.RecordsRequest{Op: req.Op, Occurrence: string(rune('0' + r.IntN(3))), Retention: time.Second}
		if req.Op == node.OpAdopt {
			record.Begun, record.Whole, record.Since = plain.Records.Begun, r.IntN(2) == 0, now.Add(-time.Minute)
			record.Records = []node.Record{{Occurrence: record.Occurrence, Left: time.Duration(r.IntN(2000)) * time.Millisecond}}
		}
		ask := func(e *Entry) (any, []node.Wake) {
			if req.Op < node.OpComplete {
				return e.apply(now, req, true)
			}
			m := new(Server).RecordsOf(e, now, record)
			m.Begun, m.Since = m.Begun.UTC(), m.Since.UTC()
			return m, nil
		}
		want, wakes := ask(&plain)
		got, sameWakes := ask(&stored)
		if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(sameWakes, wakes) {
			t.Fatalf("seed %d: %v of %q: %+v, want %+v", seed, req.Op, req.Value, got, want)
		}
		var err error
		if stored, err = store(stored, now); err != nil {
			t.Fatalf("seed %d: %v of %q: %v", seed, req.Op, req.Value, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	e := Entry{Holders: Holders{{Value: "a", Token: 1, Until: time.UnixMicro(5), Share: node.Share{Mode: node.Slotted, Slots: 2}}}}
	e.Queue.Waiters = []node.Waiter{{Value: "b"}}
	e.Records.Completed = map[string]time.Time{"x": time.UnixMicro(7)}
	f.Add(e.AppendTo(nil))
	m := Marker{ID: "a", Guard: node.Guard{Membership: "l"}}
	f.Add(m.AppendTo(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if e, err := DecodeEntry(b); err == nil {
			if _, err := DecodeEntry(e.AppendTo(nil)); err != nil {
				t.Errorf("an entry that was read cannot be read again: %v", err)
			}
		}
		if m, err := DecodeMarker(b); err == nil {
			if _, err := DecodeMarker(m.AppendTo(nil)); err != nil {
				t.Errorf("a marker that was read cannot be read again: %v", err)
			}
		}
	})
}
