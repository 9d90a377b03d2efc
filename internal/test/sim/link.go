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

	cut chan struct{} // closed when the connection breaks
	// last is, in order, closed when the last request of a value is executed.
	last    map[string]chan struct{}
	gone    time.Duration // until when requests and notifications are lost
	deaf    time.Duration // until when replies and notifications are lost
	listens func(node.Wake)
}

// guardedLink is a link to a server that can be guarded.
type guardedLink struct{ *link }

func (guardedLink) GuardsAlone() bool { return false }

func (l guardedLink) Mark(ctx context.Context, req node.MarkRequest) (node.MarkReply, error) {
	return carry(ctx, l.link, node.OpMark, func() (node.MarkReply, error) { return l.host.server.Mark(req) })
}

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
	sentAgain       harm = "sent again"
)

// odds are how often messages are harmed, and by how much more they are late at
// most, by Plan.InOrder and Plan.Behind. Each range begins where the one before it
// ends. In order there are no copies, and one that is late holds up those behind it.
// Where a clock is behind, whatever is executed is answered in time.
var odds = map[[2]bool][]struct {
	below     uint64
	harm      harm
	out, back time.Duration
}{
	{false, false}: {{4, requestLost, 0, 0}, {8, replyLost, 0, 0}, {11, neverSent, 0, 0}, {15, brokenOff, 0, 0},
		{21, requestLate, late, 0}, {23, requestVeryLate, veryLate, 0}, {28, replyLate, 0, late},
		{31, twice, 0, 0}, {33, stubborn, 0, late}},
	{true, false}: {{4, requestLost, 0, 0}, {8, replyLost, 0, 0}, {11, neverSent, 0, 0}, {15, brokenOff, late, 0},
		{18, requestLate, late, 0}, {23, sentAgain, late, 0}, {28, replyLate, 0, late},
		{31, brokenOff, veryLate, 0}, {33, stubborn, 0, late}},
	{false, true}: {{4, requestLost, 0, 0}, {8, replyLost, 0, 0}, {11, neverSent, 0, 0}, {50, requestLate, nodeTimeout / 3, 0}},
	{true, true}: {{4, requestLost, 0, 0}, {8, replyLost, 0, 0}, {11, neverSent, 0, 0}, {20, requestLate, nodeTimeout / 3, 0},
		{50, sentAgain, nodeTimeout / 3, 0}},
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
	for _, o := range odds[[2]bool{w.plan.InOrder, w.plan.Behind}] {
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
	other any // what a store without a clock answers
}

// message is a request on its way, and its answer.
type message struct {
	node.Request
	fate
	execute func() answer
	cut     chan struct{}
	again   bool // it was sent again
	done    chan answer
}

// Starts reports whether a client should call Start.
func (l *link) Starts() bool { return l.w.plan.InOrder }

// Start is Do, and returns when the request is sent.
func (l *link) Start(req node.Request, limit time.Duration, done func(node.Reply, error)) {
	m := l.request(req)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		a := l.await(ctx, m)
		done(a.reply, a.err)
	}()
}

// Do delivers a request to the server and the answer to the client, or loses
// one of them.
func (l *link) Do(ctx context.Context, req node.Request) (node.Reply, error) {
	a := l.await(ctx, l.request(req))
	return a.reply, a.err
}

// request sends a request to the model of a server.
func (l *link) request(req node.Request) *message {
	l.own(req.Value)
	return l.send(req, func() answer {
		reply, err := l.host.server.Do(req)
		return answer{reply: reply, err: err}
	})
}

// send sends something to be executed, or loses it.
func (l *link) send(req node.Request, execute func() answer) *message {
	w := l.w
	now := w.now()
	m := &message{Request: req, fate: l.fateOf(&req, now), execute: execute, done: make(chan answer, 1)}
	w.mu.Lock()
	gone := now < l.gone
	m.cut = l.cut
	w.mu.Unlock()
	switch {
	case m.harm == neverSent, gone && m.by&1 == 0:
		w.after(m.back, func() {
			m.done <- answer{err: fmt.Errorf("connection refused (%w)", node.ErrUnsent)}
		})
	case m.harm == requestLost, gone:
	default:
		if m.harm == brokenOff {
			w.after(m.back, func() { answerWith(m.done, answer{err: errReset}) })
		}
		out := m.out
		if m.harm == sentAgain {
			out = w.trip(m.id ^ 9)
		}
		// A paused process sends nothing; it sends its message when it
		// continues.
		l.deliver(m, out+l.client.pausedFor(now))
	}
	return m
}

// own notes that a value is the client's.
func (l *link) own(value string) {
	l.w.locked(func() {
		if value != "" && l.w.owners[value] == nil {
			l.w.owners[value] = l.client
		}
	})
}

// await waits for the answer to a request.
func (l *link) await(ctx context.Context, m *message) answer {
	w := l.w
	if m.harm == stubborn {
		select {
		case a := <-m.done:
			return a
		case <-time.After(2 * late):
		}
	}
	select {
	case a := <-m.done:
		return a
	case <-ctx.Done():
		// Not all at the same moment, so that the order is the same each time.
		time.Sleep(w.jitter(m.id ^ 4))
		return answer{err: ctx.Err()}
	case <-m.cut:
		time.Sleep(w.jitter(m.id ^ 5))
		return answer{err: errReset}
	}
}

// deliver lets a request arrive after a while, and in order after those of its value
// before it.
func (l *link) deliver(m *message, after time.Duration) {
	w, executed := l.w, make(chan struct{})
	var before chan struct{}
	if w.plan.InOrder && m.harm != brokenOff {
		w.locked(func() { before, l.last[m.Value] = l.last[m.Value], executed })
	}
	time.AfterFunc(after, func() {
		if before != nil {
			<-before
		}
		w.events.Lock()
		defer w.events.Unlock()
		l.arrive(m, executed)
	})
}

// answerWith is for the second of two answers, which nobody waits for.
func answerWith(done chan answer, a answer) {
	select {
	case done <- a:
	default:
	}
}

// arrive executes a request on the server.
func (l *link) arrive(m *message, executed chan struct{}) {
	w, h, now := l.w, l.host, l.w.now()
	w.mu.Lock()
	frozen, down, deaf := h.frozen-now, now < h.down, now < l.deaf
	w.mu.Unlock()
	if frozen > 0 && !down {
		w.after(frozen+w.jitter(m.id^6), func() { l.arrive(m, executed) })
		return
	}
	defer close(executed)
	switch {
	case down:
		w.after(m.back, func() { answerWith(m.done, answer{err: errReset}) })
		return
	case m.harm == sentAgain && !m.again:
		m.again = true
		w.judge.saw("request that was sent again")
		w.after(m.back, func() { l.deliver(m, m.out+l.client.pausedFor(w.now())) })
		return
	}
	a := m.execute()
	a.reply.Again = m.again
	w.note("client %d -> %v: %v %.6s (%s) token %d: %v, place %d (%s), %v; %s", l.client.number, l, m.Op, m.Value,
		m.Share.Text(), uint64(m.Token)%1e9, a.reply.Status, a.reply.Rank, a.reply.Share.Text(), a.err, m.harm)
	// A copy of a request that was refused may be granted later without notice:
	// no promise excludes that.
	if m.harm == twice && (m.Op != node.OpAcquire || a.reply.Status == node.Granted) {
		again := *m
		again.harm, again.id, again.done = unharmed, mix(m.id), make(chan answer, 1)
		l.deliver(&again, w.trip(m.id^7)+below(mix(m.by), late))
	}
	if m.harm == replyLost || deaf {
		return
	}
	w.after(m.back, func() { l.back(a, m) })
}

// back hands the answer to the client when that is not paused.
func (l *link) back(a answer, m *message) {
	if wait := l.client.pausedFor(l.w.now()); wait > 0 {
		l.w.after(wait+l.w.jitter(m.id^8), func() { l.back(a, m) })
		return
	}
	answerWith(m.done, a)
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
		l.cut, l.last = make(chan struct{}), map[string]chan struct{}{}
	})
}

// reopened reports to the client that notifications arrive again.
func (l *link) reopened() { l.wake(node.Wake{Kind: node.WakeMissed}) }
