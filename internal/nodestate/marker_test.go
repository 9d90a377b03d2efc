package nodestate

import (
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
)

// TestAMarkerIsWrittenAsTheTableSays marks servers in all states in all ways.
func TestAMarkerIsWrittenAsTheTableSays(t *testing.T) {
	const quarantine, longer = 32 * time.Second, 90 * time.Second
	now := time.UnixMicro(1_700_000_000_000_000)
	mine := node.Guard{Membership: "0123456789abcdef", Nodes: "a b c", Generation: 4, MaxTTL: 30 * time.Second, Window: 10 * time.Second, Quarantine: quarantine}
	other, earlier := mine, mine
	other.Membership, other.Nodes, other.Quarantine, other.Generation = "fedcba9876543210", "a b", longer, 9
	earlier.Generation, earlier.MaxTTL = 3, time.Minute
	const known, epoch = 5, 7 // what the client knows, and what the marker has
	mark := func(id string, g node.Guard, from time.Duration, reason string) Marker {
		return Marker{ID: id, Guard: g, TrustedFrom: now.Add(from), Lasts: max(0, from), Reason: reason, Epoch: epoch, Lineage: "0d0d0d0d", Epochs: "0a0a0a0a:2,0b0b0b0b:2"}
	}
	noted := func(m Marker) Marker { m.Epochs = "0a0a0a0a:3,0b0b0b0b:2"; return m }
	after := func(m Marker, epoch uint64) Marker { m.Epoch, m.Lineage = epoch, "0c0c0c0c"; return noted(m) }
	over := func(m Marker, epoch uint64) Marker { m = after(m, epoch); m.Epochs = "0a0a0a0a:3"; return m }
	barred := func(g node.Guard) Marker {
		g.Membership, g.From, g.Nodes, g.Generation = node.BarredMembership, g.Nodes, mine.Nodes, mine.Generation
		return Marker{ID: "now", Guard: g, TrustedFrom: trustedNever, Reason: node.ReasonBarred, Epoch: epoch, Lineage: "0c0c0c0c", Epochs: "0a0a0a0a:3"}
	}
	none, trusted := Marker{}, mark("now", mine, -time.Hour, node.ReasonNew)
	waiting := mark("now", mine, time.Second, node.ReasonNew)
	before := mark("before", mine, -time.Hour, node.ReasonNew)
	others := mark("now", other, -time.Hour, node.ReasonNew)
	replaced := mark("before", mine, longer, node.ReasonMembership)
	setBack := mark("now", mine, time.Hour, node.ReasonNew)
	setBack.Lasts = quarantine
	changedBack := mark("now", mine, time.Hour, node.ReasonMembership)
	changedBack.Lasts = longer
	missed := mark("now", earlier, -time.Hour, node.ReasonNew)
	lower := others
	lower.Guard.Generation = mine.Generation - 1
	told, from := other, mine
	told.Told, from.From = true, other.Nodes
	nowhere := barred(other)
	nowhere.Guard.From = ""
	failedBack := trusted
	failedBack.Epoch = known - 1
	for _, c := range []struct {
		what   string
		marker Marker
		mark   node.Mark
		want   node.Status
		after  Marker
	}{
		{"none, read", none, node.MarkRead, node.Absent, none},
		{"none, noted", none, node.MarkNote, node.Absent, none},
		{"none, written", none, node.MarkWrite, node.Quarantined, over(mark("now", mine, quarantine, node.ReasonNew), known+1)},
		{"none, fresh", none, node.MarkFresh, node.Granted, over(mark("now", mine, 0, node.ReasonFresh), known+1)},
		{"none, replaced", none, node.MarkReplace, node.Quarantined, over(mark("now", mine, quarantine, node.ReasonMembership), known+1)},
		{"none, barred", none, node.MarkBar, node.Misconfigured, func() Marker {
			m := barred(mine)
			m.Epoch, m.Guard.From = known, ""
			return m
		}()},

		{"trusted, read", trusted, node.MarkRead, node.Granted, trusted},
		{"trusted, noted", trusted, node.MarkNote, node.Granted, noted(trusted)},
		{"trusted, written", trusted, node.MarkWrite, node.Granted, trusted},
		{"trusted, fresh", trusted, node.MarkFresh, node.Granted, trusted},
		{"trusted, replaced", trusted, node.MarkReplace, node.Granted, trusted},
		{"trusted, barred", trusted, node.MarkBar, node.Granted, trusted},

		{"quarantined, read", waiting, node.MarkRead, node.Quarantined, waiting},
		{"quarantined, noted", waiting, node.MarkNote, node.Quarantined, noted(waiting)},
		{"quarantined, written", waiting, node.MarkWrite, node.Quarantined, waiting},
		{"quarantined, fresh", waiting, node.MarkFresh, node.Granted, after(mark("now", mine, 0, node.ReasonFresh), epoch+1)},
		{"quarantined, barred", waiting, node.MarkBar, node.Quarantined, waiting},
		{"quarantined, replaced", waiting, node.MarkReplace, node.Quarantined, waiting},

		{"restarted, read", before, node.MarkRead, node.Absent, before},
		{"restarted, written", before, node.MarkWrite, node.Quarantined, after(mark("now", mine, quarantine, node.ReasonChanged), epoch+1)},
		{"restarted, fresh", before, node.MarkFresh, node.Quarantined, after(mark("now", mine, quarantine, node.ReasonChanged), epoch+1)},
		{"restarted, barred", before, node.MarkBar, node.Misconfigured, noted(barred(mine))},
		{"restarted after a change, written", replaced, node.MarkWrite, node.Quarantined, after(mark("now", mine, longer, node.ReasonMembership), epoch+1)},

		{"restarted soon after a change, written", mark("before", mine, time.Second, node.ReasonMembership), node.MarkWrite, node.Quarantined, after(mark("now", mine, quarantine, node.ReasonMembership), epoch+1)},

		{"failed back, read", failedBack, node.MarkRead, node.Absent, failedBack},
		{"failed back, noted", failedBack, node.MarkNote, node.Absent, noted(failedBack)},
		{"failed back, written", failedBack, node.MarkWrite, node.Quarantined, after(mark("now", mine, quarantine, node.ReasonChanged), known+1)},
		{"failed back, fresh", failedBack, node.MarkFresh, node.Quarantined, after(mark("now", mine, quarantine, node.ReasonChanged), known+1)},

		{"missed a change, read", missed, node.MarkRead, node.Absent, missed},
		{"missed a change, written", missed, node.MarkWrite, node.Quarantined, over(mark("now", mine, quarantine, node.ReasonMembership), epoch+1)},
		{"missed a change, fresh", missed, node.MarkFresh, node.Quarantined, over(mark("now", mine, quarantine, node.ReasonMembership), epoch+1)},
		{"missed a change, replaced", missed, node.MarkReplace, node.Quarantined, over(mark("now", mine, quarantine, node.ReasonMembership), epoch+1)},
		{"missed a change, barred", missed, node.MarkBar, node.Misconfigured, barred(earlier)},

		{"another's, read", others, node.MarkRead, node.Misconfigured, others},
		{"another's, noted", others, node.MarkNote, node.Misconfigured, others},
		{"another's, written", others, node.MarkWrite, node.Misconfigured, others},
		{"another's of a lower generation, written", lower, node.MarkWrite, node.Quarantined, over(mark("now", mine, longer, node.ReasonMembership), epoch+1)},
		{"another's of a lower generation, fresh", lower, node.MarkFresh, node.Misconfigured, lower},
		{"another's, fresh", others, node.MarkFresh, node.Misconfigured, others},
		{"another's, replaced", others, node.MarkReplace, node.Quarantined, over(mark("now", mine, longer, node.ReasonMembership), epoch+1)},
		{"another's, barred", others, node.MarkBar, node.Misconfigured, barred(other)},

		{"barred, read", barred(other), node.MarkRead, node.Misconfigured, barred(other)},
		{"barred, written", barred(other), node.MarkWrite, node.Misconfigured, barred(other)},
		{"barred, barred", barred(other), node.MarkBar, node.Misconfigured, barred(other)},
		{"barred, replaced", barred(other), node.MarkReplace, node.Quarantined, over(mark("now", from, longer, node.ReasonMembership), epoch+1)},
		{"told, barred", mark("now", told, -time.Hour, node.ReasonMembership), node.MarkBar, node.Misconfigured, nowhere},
		{"barred, told", nowhere, node.MarkReplace, node.Quarantined, func() Marker {
			m := over(mark("now", mine, longer, node.ReasonMembership), epoch+1)
			m.Guard.Told = true
			return m
		}()},

		{"set back, read", setBack, node.MarkRead, node.Quarantined, setBack},
		{"set back, written", setBack, node.MarkWrite, node.Quarantined, after(mark("now", mine, quarantine, node.ReasonNew), epoch+1)},
		{"set back after a change, written", changedBack, node.MarkWrite, node.Quarantined, after(mark("now", mine, longer, node.ReasonMembership), epoch+1)},
	} {
		s := Server{ID: "now", Marker: c.marker}
		guard := mine
		guard.Told = c.mark == node.MarkReplace && c.after.Guard.Told
		req := node.MarkRequest{Mark: c.mark, Guard: &guard, Until: now.Add(-1), Epoch: known, Lineage: "0c0c0c0c", Epochs: "0a0a0a0a:3"}
		if r := s.Mark(now, req); r.Status != node.Stale || s.Marker != c.marker {
			t.Errorf("%s, too late: %v, and the marker is %+v", c.what, r.Status, s.Marker)
		}
		req.Until = now
		r := s.Mark(now, req)
		if r.Status != c.want || s.Marker != c.after {
			t.Errorf("%s: %v, and the marker is %+v, want %v and %+v", c.what, r.Status, s.Marker, c.want, c.after)
		}
		if r.Guard == nil && s.Marker.written() || r.Guard != nil && *r.Guard != s.Marker.Guard || r.Reason != s.Marker.Reason {
			t.Errorf("%s: the reply is %+v, with the marker %+v", c.what, r, s.Marker)
		}
	}
}

// TestAServerGrantsByItsMarker asks servers in all states.
func TestAServerGrantsByItsMarker(t *testing.T) {
	now := time.Now()
	mine := node.Guard{Membership: "0123456789abcdef", Nodes: "a b c", MaxTTL: 30 * time.Second, Window: 10 * time.Second, Quarantine: 32 * time.Second}
	wider, other := mine, mine
	wider.Window, other.Membership = time.Minute, "fedcba9876543210"
	trusted := Marker{ID: "now", Guard: mine, TrustedFrom: now, Reason: node.ReasonNew, Epoch: 2}
	as := func(f func(m *Marker)) Marker { m := trusted; f(&m); return m }
	const granted, config, sits = node.Granted, node.Misconfigured, node.Quarantined
	for _, c := range []struct {
		what   string
		marker Marker
		ttl    time.Duration
		// the status for a client with the guard on, of an acquire and of an
		// extension, and for a client with the guard off, of an acquire
		acquire, extend, off node.Status
		reason               string // of the reply to the acquire
		needsMark            bool
	}{
		{"trusted", trusted, time.Second, granted, granted, granted, "", false},
		{"no marker", Marker{}, time.Second, sits, granted, granted, node.ReasonNew, true},
		{"in quarantine", as(func(m *Marker) { m.TrustedFrom = now.Add(1) }), time.Second, sits, granted, granted, node.ReasonNew, false},
		{"in quarantine after a membership change", as(func(m *Marker) { m.TrustedFrom, m.Reason = now.Add(1), node.ReasonMembership }), time.Second, sits, granted, sits, node.ReasonMembership, false},
		{"trusted after a membership change", as(func(m *Marker) { m.Reason = node.ReasonMembership }), time.Second, granted, granted, granted, "", false},
		{"restarted", as(func(m *Marker) { m.ID = "before" }), time.Second, sits, granted, granted, node.ReasonChanged, true},
		{"failed back", as(func(m *Marker) { m.Epoch = 1 }), time.Second, sits, granted, granted, node.ReasonChanged, true},
		{"clock set back", as(func(m *Marker) { m.TrustedFrom = now.Add(time.Hour) }), time.Second, sits, granted, granted, node.ReasonChanged, true},
		{"other parameters", as(func(m *Marker) { m.Guard = wider }), time.Second, config, granted, granted, "", false},
		{"another membership", as(func(m *Marker) { m.Guard = other }), time.Second, config, config, config, "", false},
		{"barred", as(func(m *Marker) { m.Guard.Membership = node.BarredMembership }), time.Second, config, config, config, "", false},
		{"a longer time to live", trusted, time.Minute, granted, config, config, "", false},
	} {
		for _, off := range []bool{false, true} {
			s := Server{ID: "now", Marker: c.marker}
			guard := mine
			guard.Off = off
			req := request(node.OpAcquire, "name", "one")
			req.TTL, req.Guard, req.Epoch = c.ttl, &guard, 2
			want, reason, server, needsMark := c.acquire, c.reason, "now", c.needsMark
			if off {
				want, reason, server, needsMark = c.off, "", "", false
				if want == sits {
					reason = c.reason
				}
			}
			if want != granted {
				server = ""
			}
			if r, _ := s.Apply(now, req); r.Status != want || r.Reason != reason || r.NeedsMark != needsMark || r.Server != server {
				t.Errorf("%s, guard off %v: acquire: %v %q %v from %q, want %v %q %v from %q", c.what, off, r.Status, r.Reason, r.NeedsMark, r.Server, want, reason, needsMark, server)
			}
			s.names = map[string]*Entry{"name": {Holders: Holders{{Value: "one", Until: now.Add(time.Second)}}}}
			req.Op = node.OpExtend
			needsMark = !off && (c.marker.ID != "now" || c.marker.Epoch < 2)
			if r, _ := s.Apply(now, req); r.Status != c.extend || r.NeedsMark != needsMark && r.Status == granted {
				t.Errorf("%s, guard off %v: extend: %v %v, want %v %v", c.what, off, r.Status, r.NeedsMark, c.extend, needsMark)
			}
			req.Value = "two"
			if r, _ := s.Apply(now, req); c.extend == granted && r.Status != node.Held {
				t.Errorf("%s: extend of another's: %v", c.what, r.Status)
			}
		}
	}
}
