package sim

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redlatch/redlatch/node"
)

// link is one client's connection to one server.
type link struct {
	w      *World
	client int
	server int
	name   string

	mu      sync.Mutex
	view    *Server
	cut     chan struct{} // closed when the connection breaks
	gone    time.Duration // until when requests and notifications are lost
	deaf    time.Duration // until when replies and notifications are lost
	listens func(node.Wake)
}

// guardedLink is a link to a server that can be guarded.
type guardedLink struct{ *link }

func (guardedLink) GuardsAlone() bool { return false }

func (l *link) String() string { return l.name }
func (l *link) Close() error   { return nil }

// ReturnsByDeadline is true for a driver that obeys its context.
func (l *link) ReturnsByDeadline() bool { return l.w.plan.Prompt }

var errReset = errors.New("connection reset by peer")

// fate is what happens to one message.
type fate struct {
	id        uint64
	out, back time.Duration
	harm      harm
	by        uint64 // more random bits
}

type harm uint8

const (
	unharmed harm = iota
	requestLost
	replyLost
	neverSent
	brokenOff
	requestLate
	requestVeryLate
	replyLate
	twice
	stubborn // the driver does not obey its context
)

var harms = [...]string{"", "request lost", "reply lost", "never sent", "broken off", "request late", "request very late", "reply late", "twice", "stubborn"}

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
	f := fate{id: w.dice.roll(uint64(l.client)<<8|uint64(l.server), uint64(req.Op), uint64(req.Token), number(req.Value), uint64(now))}
	f.out = w.trip(f.id ^ 1)
	f.back = w.trip(f.id ^ 2)
	f.by = mix(f.id ^ 3)
	if w.plan.Storm == 0 || now >= w.plan.Mend {
		return f
	}
	of := uint64(400) >> (w.plan.Storm - 1)
	if req.Op == node.OpRepair || req.Op == node.OpOffer {
		of /= 2 // there are few of them
	}
	switch n := f.by % of; {
	case n < 4:
		f.harm = requestLost
	case n < 8:
		f.harm = replyLost
	case n < 11:
		f.harm = neverSent
	case n < 15:
		f.harm = brokenOff
	case n < 21:
		f.harm = requestLate
		f.out += below(mix(f.by), late)
	case n < 23:
		f.harm = requestVeryLate
		f.out += below(mix(f.by), veryLate)
	case n < 28:
		f.harm = replyLate
		f.back += below(mix(f.by), late)
	case n < 31: // a token distinguishes a copy from the next request
		f.harm = twice
	case n < 33 && !w.plan.Prompt:
		f.harm = stubborn
		f.back += below(mix(f.by), late)
	}
	return f
}

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
	l.mu.Lock()
	cut := l.cut
	gone := now < l.gone
	l.mu.Unlock()
	if req.Value != "" {
		w.own(req.Value, l.client)
	}
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
		w.after(f.out+w.pausedFor(l.client, now), func() { l.arrive(req, f, done) })
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
	w := l.w
	h := w.hosts[l.server]
	switch wait, down := h.state(w.now()); {
	case down:
		w.after(f.back, func() { answerWith(done, answer{err: errReset}) })
		return
	case wait > 0:
		w.after(wait+w.jitter(f.id^6), func() { l.arrive(req, f, done) })
		return
	}
	l.mu.Lock()
	reply, err := l.view.Do(req)
	deaf := w.now() < l.deaf
	l.mu.Unlock()
	w.trace(l, req, f, reply, err)
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
	if wait := l.w.pausedFor(l.client, l.w.now()); wait > 0 {
		l.w.after(wait+l.w.jitter(f.id^8), func() { l.back(a, f, done) })
		return
	}
	answerWith(done, a)
}

// Listen delivers notifications over the link.
func (l *link) Listen(f func(node.Wake)) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listens = f
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.listens = nil
	}
}

// wake delivers a notification to the client, or loses it.
func (l *link) wake(wake node.Wake) {
	w, now := l.w, l.w.now()
	id := w.dice.roll(uint64(l.client)<<8|uint64(l.server), uint64(wake.Kind), number(wake.Value), uint64(now), 77)
	trip := w.trip(id)
	if w.plan.Storm > 0 && now < w.plan.Mend && wake.Kind != node.WakeMissed {
		switch n := mix(id) % 40; {
		case n < 2:
			return
		case n < 4:
			trip += below(mix(id+1), late)
		}
	}
	w.after(trip+w.pausedFor(l.client, now), func() {
		l.mu.Lock()
		f, gone := l.listens, w.now() < max(l.gone, l.deaf)
		l.mu.Unlock()
		if f != nil && !gone {
			f(wake)
		}
	})
}

// breakOff cuts the connections of the link.
func (l *link) breakOff() {
	l.mu.Lock()
	close(l.cut)
	l.cut = make(chan struct{})
	l.mu.Unlock()
}

// reopened reports to the client that notifications arrive again.
func (l *link) reopened() { l.wake(node.Wake{Kind: node.WakeMissed}) }
