package sim

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/node"
)

// link is one client's connection to one server.
type link struct {
	w      *World
	client *client
	host   *host

	cut     chan struct{} // closed when the connection breaks
	gone    time.Duration // until when requests and notifications are lost
	deaf    time.Duration // until when replies and notifications are lost
	listens func(node.Wake)
}

// guardedLink is a link to a server that can be guarded.
type guardedLink struct{ *link }

func (guardedLink) GuardsAlone() bool { return false }

func (l *link) String() string { return l.host.server.name }
func (l *link) Close() error   { return nil }

var errReset = errors.New("connection reset by peer")

// fate is what happens to one message.
type fate struct {
	id        uint64
	out, back time.Duration
	harm      harm
	by        uint64 // more random bits
}

type harm string

const (
	unharmed        harm = ""
	requestLost     harm = "request lost"
	replyLost       harm = "reply lost"
	neverSent       harm = "never sent"
	brokenOff       harm = "broken off"
	requestLate     harm = "request late"
	requestVeryLate harm = "request very late"
	replyLate       harm = "reply late"
	twice           harm = "twice"    // a token distinguishes a copy from the next request
	stubborn        harm = "stubborn" // the driver does not obey its context
)

// odds are how often messages are harmed, and by how much more they are late at
// most. Each range begins where the one before it ends.
var odds = []struct {
	below     uint64
	harm      harm
	out, back time.Duration
}{
	{4, requestLost, 0, 0}, {8, replyLost, 0, 0}, {11, neverSent, 0, 0}, {15, brokenOff, 0, 0},
	{21, requestLate, late, 0}, {23, requestVeryLate, veryLate, 0}, {28, replyLate, 0, late},
	{31, twice, 0, 0}, {33, stubborn, 0, late},
}

const (
	// nodeTimeout is the clients' time limit for a node.
	nodeTimeout = 50 * time.Millisecond
	late        = 3 * nodeTimeout
	// veryLate is above the window of a world with short times, and below the
	// time after which a world is checked for leftovers.
	veryLate = 2 * time.Second
)

// fateOf decides what happens to a request.
func (l *link) fateOf(req *node.Request, now time.Duration) fate {
	w := l.w
	f := fate{id: w.dice.roll(l.number(), uint64(req.Op), uint64(req.Token), number(req.Value), uint64(now))}
	f.out = w.trip(f.id ^ 1)
	f.back = w.trip(f.id ^ 2)
	f.by = mix(f.id ^ 3)
	if w.plan.Storm == 0 || now >= w.plan.Mend {
		return f
	}
	of := uint64(400) >> (w.plan.Storm - 1)
	if req.Op == node.OpRepair || req.Op == node.OpYield {
		of /= 2 // there are few of them
	}
	for _, o := range odds {
		if f.by%of < o.below {
			if o.harm != stubborn || !w.plan.Obeys {
				f.harm = o.harm
				f.out += below(mix(f.by), o.out)
				f.back += below(mix(f.by), o.back)
			}
			break
		}
	}
	return f
}

func (l *link) number() uint64 { return uint64(l.client.number)<<8 | uint64(l.host.number) }

// number turns the random part of a value into a number.
func number(value string) uint64 {
	n, err := strconv.ParseUint(value[:min(16, len(value))], 16, 64)
	if err != nil {
		return 0
	}
	return n
}

type answer struct {
	reply node.Reply
	err   error
}

// Do delivers a request to the server and the answer to the client, or loses
// one of them.
func (l *link) Do(ctx context.Context, req node.Request) (node.Reply, error) {
	w := l.w
	now := w.now()
	f := l.fateOf(&req, now)
	w.mu.Lock()
	cut, gone := l.cut, now < l.gone
	if req.Value != "" && w.owners[req.Value] == nil {
		w.owners[req.Value] = l.client
	}
	w.mu.Unlock()
	done := make(chan answer, 1)
	switch {
	case f.harm == neverSent, gone && f.by&1 == 0:
		w.after(f.back, func() {
			done <- answer{err: fmt.Errorf("connection refused (%w)", node.ErrUnsent)}
		})
	case f.harm == requestLost, gone:
	default:
		if f.harm == brokenOff {
			w.after(f.back, func() { answerWith(done, answer{err: errReset}) })
		}
		// A paused process sends nothing; it sends its message when it
		// continues.
		w.after(f.out+l.client.pausedFor(now), func() { l.arrive(req, f, done) })
	}
	if f.harm == stubborn {
		select {
		case a := <-done:
			return a.reply, a.err
		case <-time.After(2 * late):
		}
	}
	select {
	case a := <-done:
		return a.reply, a.err
	case <-ctx.Done():
		// Not all at the same moment, so that the order is the same each time.
		time.Sleep(w.jitter(f.id ^ 4))
		return node.Reply{}, ctx.Err()
	case <-cut:
		time.Sleep(w.jitter(f.id ^ 5))
		return node.Reply{}, errReset
	}
}

// answerWith is for the second of two answers, which nobody waits for.
func answerWith(done chan answer, a answer) {
	select {
	case done <- a:
	default:
	}
}

// arrive has the server execute a request.
func (l *link) arrive(req node.Request, f fate, done chan answer) {
	w, h, now := l.w, l.host, l.w.now()
	w.mu.Lock()
	frozen, down, deaf := h.frozen-now, now < h.down, now < l.deaf
	w.mu.Unlock()
	switch {
	case down:
		w.after(f.back, func() { answerWith(done, answer{err: errReset}) })
		return
	case frozen > 0:
		w.after(frozen+w.jitter(f.id^6), func() { l.arrive(req, f, done) })
		return
	}
	reply, err := h.server.Do(req)
	w.note("client %d -> %v: %v %.6s (%s) token %d: %v, place %d (%s), %v; %s", l.client.number, l, req.Op, req.Value,
		req.Share.Text(), uint64(req.Token)%1e9, reply.Status, reply.Rank, reply.Share.Text(), err, f.harm)
	// A copy of a request that was refused may be granted later without notice:
	// no promise excludes that.
	if f.harm == twice && (req.Op != node.OpAcquire || reply.Status == node.Granted) {
		again := f
		again.harm = unharmed
		again.id = mix(f.id)
		w.after(w.trip(f.id^7)+below(mix(f.by), late), func() { l.arrive(req, again, make(chan answer, 1)) })
	}
	if f.harm == replyLost || deaf {
		return
	}
	w.after(f.back, func() { l.back(answer{reply, err}, f, done) })
}

// back hands the answer to the client when that is not paused.
func (l *link) back(a answer, f fate, done chan answer) {
	if wait := l.client.pausedFor(l.w.now()); wait > 0 {
		l.w.after(wait+l.w.jitter(f.id^8), func() { l.back(a, f, done) })
		return
	}
	answerWith(done, a)
}

// Listen delivers notifications over the link.
func (l *link) Listen(f func(node.Wake)) (stop func()) {
	l.w.locked(func() { l.listens = f })
	return func() { l.w.locked(func() { l.listens = nil }) }
}

// wake delivers a notification to the client, or loses it.
func (l *link) wake(wake node.Wake) {
	w, now := l.w, l.w.now()
	id := w.dice.roll(l.number(), uint64(wake.Kind), number(wake.Value), uint64(now), 77)
	trip := w.trip(id)
	if w.plan.Storm > 0 && now < w.plan.Mend && wake.Kind != node.WakeMissed {
		switch n := mix(id) % 40; {
		case n < 2:
			return
		case n < 4:
			trip += below(mix(id+1), late)
		}
	}
	w.after(trip+l.client.pausedFor(now), func() {
		w.mu.Lock()
		f, gone := l.listens, w.now() < max(l.gone, l.deaf)
		w.mu.Unlock()
		if f != nil && !gone {
			f(wake)
		}
	})
}

// breakOff cuts the connections of the link.
func (l *link) breakOff() {
	l.w.locked(func() {
		close(l.cut)
		l.cut = make(chan struct{})
	})
}

// reopened reports to the client that notifications arrive again.
func (l *link) reopened() { l.wake(node.Wake{Kind: node.WakeMissed}) }
