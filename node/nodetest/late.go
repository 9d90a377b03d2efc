package nodetest

import (
	"fmt"
	"time"

	"github.com/redlatch/redlatch/node"
)

// lateness distinguishes a node that loses what it granted from a machine so
// slow that the grant expired. A claim plans how much time passes between its
// steps. If the planned time is shorter than a lock or a place in a queue
// lasts, but the time that really passed is longer, a failure of the claim
// shows nothing.
//
// A nil lateness does nothing.
type lateness struct {
	now     func() time.Time
	end     func(format string, args ...any) // ends the run, which is repeated
	planned time.Duration                    // the time that the claim let pass, in all
	asked   moment                           // when the last request was sent
	granted map[holder]grant
	why     string // what may have expired though the claim relies on it
}

// moment is a point in a claim, on the clock and in its plan.
type moment struct {
	at      time.Time
	planned time.Duration
}

// holder is a client that holds a lock or waits for it.
type holder struct{ name, value string }

// grant is a lock and its fence, or a place in a queue, and how long each lasts.
type grant struct {
	moment
	lasts []time.Duration
}

// places is how long a place in a queue lasts, also one that is its turn.
var places = []time.Duration{node.WaiterLease, node.TurnLease}

func newLateness(now func() time.Time, end func(format string, args ...any)) *lateness {
	return &lateness{now: now, end: end, granted: map[holder]grant{}}
}

// passes records that the claim lets time pass.
func (l *lateness) passes(d time.Duration) {
	if l != nil {
		l.planned += d
	}
}

// asks records that a request is about to be sent. Its grant lasts at least
// from then on.
func (l *lateness) asks() {
	if l != nil {
		l.asked = moment{l.now(), l.planned}
	}
}

// token records that the last request was for the time, from which a token is
// made.
func (l *lateness) token() {
	if l != nil {
		l.granted[holder{}] = grant{l.asked, []time.Duration{window}}
	}
}

// answered records what a request was granted.
func (l *lateness) answered(req node.Request, reply node.Reply) {
	if l == nil {
		return
	}
	l.check()
	who := holder{req.Name, req.Value}
	switch {
	case reply.Rank > 0:
		l.granted[who] = grant{l.asked, places}
	case req.Op == node.OpMark && reply.Status == node.Quarantined:
		l.granted[who] = grant{l.asked, []time.Duration{reply.Left}}
	case req.Op == node.OpRelease && req.Keep > 0: // it holds on
	case req.Op == node.OpRelease:
		delete(l.granted, who)
	case req.Op != node.OpBreak && reply.Status == node.Granted:
		l.granted[who] = grant{l.asked, []time.Duration{req.TTL, req.Retention}}
	}
}

// check records whether something may have expired by now.
func (l *lateness) check() {
	if l == nil || l.why != "" {
		return
	}
	for who, g := range l.granted {
		took, planned := l.now().Sub(g.at), l.planned-g.planned
		for _, lasts := range g.lasts {
			if planned < lasts && lasts <= took {
				l.why = fmt.Sprintf("%v went by after a request of %q, and %v were planned", took, who.value, planned)
			}
		}
	}
}

// Errorf fails the claim, unless the claim was too late to show anything.
func (p *probe) Errorf(format string, args ...any) {
	p.Helper()
	p.tooLate(format, args...)
	p.reporter.Errorf(format, args...)
}

// Fatalf fails and ends the claim, unless the claim was too late to show
// anything.
func (p *probe) Fatalf(format string, args ...any) {
	p.Helper()
	p.tooLate(format, args...)
	p.reporter.Fatalf(format, args...)
}

// tooLate ends the claim if its failure shows nothing.
func (p *probe) tooLate(format string, args ...any) {
	p.Helper()
	if p.late != nil && p.late.why != "" {
		p.late.end("%s, so this shows nothing: %s", p.late.why, fmt.Sprintf(format, args...))
	}
}
