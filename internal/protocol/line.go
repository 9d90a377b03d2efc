package protocol

import (
	"slices"
	"time"
)

// This file is the local queue of a process: who of its callers asks the nodes, who
// waits for the lease of another, and to whom that is passed on.

// Line is a local queue. It has the callers of one client that want the same kind of
// share of a name, in the order of their arrival. One asks the nodes. The others wait
// behind it and cost the nodes nothing: a node would give them the same answer. The
// one that asks uses the ticket of its arrival, so it neither overtakes callers in
// other processes, or of another kind, nor delays them. If it gets the lock, those
// behind it wait for its lease.
//
// The zero value is an empty line. Its methods are what happens. They append to out
// what is to be done, in this order.
type Line struct {
	state  lineState
	behind []*Waiter // who waits, in order
	// shortage is why the last round of the one that asks had no quorum.
	shortage Shortage

	holder   string        // the value of the lease that those behind wait for; empty for none
	kind     *Config       // what it is a lease of
	since    Instant       // when its owner got it
	patience time.Duration // how long they wait for it before one of them asks
	look     When          // when Look is called
	told     bool          // the lease knows that callers wait
	// elsewhere says that others waited elsewhere when tokens were last reserved.
	elsewhere bool
}

// lineState is who of a line asks, and who has the lock.
type lineState uint8

const (
	lineEmpty lineState = iota // nobody asks or waits; a caller may have a lock that nobody waited for
	lineAsks                   // one asks
	lineHeld                   // one has the lock
	lineBoth                   // one has the lock, and another asks beside it
)

// Waiter is a caller in the same process that waits for the lock.
type Waiter struct {
	Came   Instant // when it came
	Ticket int64   // its place in the nodes' queues; 0 if it has none
	Config *Config // what it asks for
	Caller any     // who it is, for those that execute the effects
}

// LineEffect is something to be done for a line.
type LineEffect struct {
	Kind    LineEffectKind
	Waiter  *Waiter // LetIn, AskBeside, PassTo
	Waiters int     // Tell, PassTo: how many wait behind
	At      Instant // LookAt
}

// LineEffectKind is the kind of a LineEffect.
type LineEffectKind uint8

// The kinds of effects.
const (
	// LetIn: a caller asks the nodes. Left or Won must follow.
	LetIn LineEffectKind = iota + 1
	// AskBeside: a caller asks the nodes beside the line, which it has left.
	AskBeside
	// PassTo: the lease is the waiter's from now on.
	PassTo
	// Tell: the lease handles LocalWaiters, and asks the nodes for their tokens.
	Tell
	// LookAt: Look is called at a time, which replaces an earlier one.
	LookAt
	// AwaitExtension: a release waits for the end of an extension, until At at the
	// latest. The lease may be passed on then.
	AwaitExtension
)

// shortPatience is the shortest patience of those behind. Until it is over nobody asks, so that a
// lock which is held for a moment is not asked for in vain.
const shortPatience = 20 * time.Millisecond

// IsOver reports that nobody is in the line.
func (l *Line) IsOver() bool { return l.state == lineEmpty }

// Come says that a caller joins the line. It waits unless it is let in, or asks beside it.
func (l *Line) Come(w *Waiter, out []LineEffect) []LineEffect {
	if l.state == lineEmpty {
		l.state = lineAsks
		return append(out, LineEffect{Kind: LetIn, Waiter: w})
	}
	if l.shortage.AsksBeside(w.Config.Unbounded) {
		return append(out, LineEffect{Kind: AskBeside, Waiter: w})
	}
	l.behind = append(l.behind, w)
	if l.state == lineHeld && !l.kind.PassesTo(w.Config) {
		return l.letIn(out) // the first one: callers that came before stay before us
	}
	if l.state != lineHeld || l.told {
		return l.watch(out) // a lease that was told asks for more tokens when it is passed on
	}
	return l.tell(out)
}

// GiveUp says that a caller leaves which waits. It returns false if the caller was let in
// before, or has the lock.
func (l *Line) GiveUp(w *Waiter) bool {
	i := slices.Index(l.behind, w)
	if i >= 0 {
		l.behind = slices.Delete(l.behind, i, i+1)
	}
	return i >= 0
}

// Left says that the caller which asked leaves: the next one asks.
func (l *Line) Left(out []LineEffect) []LineEffect {
	if l.state == lineBoth {
		l.state = lineHeld
	} else {
		l.state = lineEmpty
	}
	return l.letIn(out)
}

// Short records why the caller that asks has no quorum, if it has none. Those behind
// it that must not wait as it does then ask beside it.
func (l *Line) Short(why Shortage, out []LineEffect) []LineEffect {
	l.shortage = why
	l.behind = slices.DeleteFunc(l.behind, func(w *Waiter) bool {
		beside := why.AsksBeside(w.Config.Unbounded)
		if beside {
			out = append(out, LineEffect{Kind: AskBeside, Waiter: w})
		}
		return beside
	})
	return out
}

// Won reports whether those behind the caller that asked wait for its lease: if there
// are any, and it may be passed on. Otherwise Left must follow.
func (l *Line) Won(now Instant, c *Claim) bool {
	if len(l.behind) == 0 || !c.CanPass() {
		return false
	}
	l.state, l.holder, l.kind, l.since, l.told = lineHeld, c.value, &c.cfg, now, false
	l.patience = max(shortPatience, 4*c.round.Elapsed())
	return true
}

// LineNews is what an event of a claim means for the line that waits for its lease.
type LineNews struct {
	// Extended: the nodes have answered an extension. Elsewhere says that somebody was
	// in the queues of those that reserved tokens. NotExtended: it failed.
	Extended, Elsewhere, NotExtended bool
	Ended                            bool // the next caller may ask
	Wants                            bool // tokens are asked for, if the lease hears who waits
}

// lineNews returns what an event means for the line, after the event.
func (c *Claim) lineNews(v View, all []News) (n LineNews) {
	n.Wants = c.WantsReserve(v)
	for _, what := range all {
		switch what {
		case Won:
			n.Wants = true
		case Extended:
			n.Extended, n.Elsewhere = true, c.pass.before != 0
		case NotExtended:
			n.NotExtended = true
		case Ended:
			n.Ended = c.lease.cause != WasPassed && !c.pauses(v)
		case Freed:
			n.Ended = true
		}
	}
	return n
}

// Follow says what has happened to a claim: if it is the lease, the line follows. After
// an extension that failed a caller asks, since the lease may be lost.
func (l *Line) Follow(c *Claim, n LineNews, out []LineEffect) []LineEffect {
	if l.holder != c.value {
		return out
	}
	if n.Extended {
		l.elsewhere = n.Elsewhere
	}
	if n.NotExtended {
		out = l.letIn(out)
	}
	if n.Ended {
		return l.ended(out)
	}
	if n.Wants {
		out = l.tell(out)
	}
	return out
}

// ended says that the lease has ended: the next caller asks.
func (l *Line) ended(out []LineEffect) []LineEffect {
	l.holder = ""
	if l.state == lineBoth {
		l.state = lineAsks
	} else {
		l.state = lineEmpty
	}
	return l.letIn(out)
}

// Look lets a caller ask if the owner of the lease has had it for long.
func (l *Line) Look(now Instant, out []LineEffect) []LineEffect {
	l.look = When{}
	if l.state == lineHeld && now-l.since >= l.patience {
		return l.letIn(out)
	}
	return l.watch(out)
}

// Pass passes the lease on to the first caller behind it, if it may be: nobody asks
// the nodes meanwhile.
func (l *Line) Pass(v View, c *Claim, out []LineEffect) []LineEffect {
	if !l.mayPass(c) || !c.MayPass(v, *l.behind[0]) {
		return out
	}
	w := l.pop()
	l.since, l.told = v.Now(), len(l.behind) > 0
	return append(out, LineEffect{Kind: PassTo, Waiter: w, Waiters: len(l.behind)})
}

// Await makes a release wait for an extension that reserves a token for the next caller,
// if the lease may not be passed on to it yet. If none is in flight, it is sent, unless
// others wait elsewhere: the lock is then theirs first.
func (l *Line) Await(v View, c *Claim, out []LineEffect) []LineEffect {
	if l.elsewhere || !l.mayPass(c) || c.MayPass(v, *l.behind[0]) {
		return out
	}
	inFlight, could := c.MayPassSoon(v, *l.behind[0])
	if could && !inFlight {
		out = append(out, LineEffect{Kind: Tell, Waiters: len(l.behind)})
	}
	if could || inFlight {
		out = append(out, LineEffect{Kind: AwaitExtension, At: v.Now() + l.patience})
	}
	return out
}

// mayPass reports whether there is a first caller behind a lease, to which it may be
// passed on.
func (l *Line) mayPass(c *Claim) bool {
	return l.holder == c.value && l.state == lineHeld && len(l.behind) > 0
}

// tell tells the lease how many callers wait for it, if there are any.
func (l *Line) tell(out []LineEffect) []LineEffect {
	if l.told = len(l.behind) > 0; l.told {
		out = append(l.watch(out), LineEffect{Kind: Tell, Waiters: len(l.behind)})
	}
	return out
}

// letIn: the first caller asks, if there is one and nobody asks.
func (l *Line) letIn(out []LineEffect) []LineEffect {
	switch {
	case len(l.behind) == 0:
		return out
	case l.state == lineEmpty:
		l.state = lineAsks
	case l.state == lineHeld:
		l.state = lineBoth
	default:
		return out
	}
	return append(out, LineEffect{Kind: LetIn, Waiter: l.pop()})
}

// watch sees to it that Look is called once the owner of the lease has had it for
// long, if callers wait for it.
func (l *Line) watch(out []LineEffect) []LineEffect {
	if l.state != lineHeld || len(l.behind) == 0 || l.look.IsSet() {
		return out
	}
	l.look = At(l.since + l.patience)
	return append(out, LineEffect{Kind: LookAt, At: l.since + l.patience})
}

// pop removes the first caller behind.
func (l *Line) pop() *Waiter {
	w := l.behind[0]
	l.behind[0] = nil
	l.behind = l.behind[1:]
	return w
}
