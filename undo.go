package redlatch

import (
	"context"
	"errors"
	"sync"
	"time"
)

// This file takes back what must not stand: grants of an attempt that failed,
// grants that came too late, keys of a lease that a node was not there to
// release. None of it runs on a caller's context.

// mayHold reports whether a node may have, or may yet come to have, a key of
// ours after this answer to an OpAcquire.
func mayHold(r NodeResult) bool {
	if r.Err != nil {
		return !errors.Is(r.Err, ErrUnsent)
	}
	return r.Reply.Status == Granted
}

// undo sends req, an OpRelease, to one node in the background, and leaves it
// to the node's janitor if that fails.
func (c *Client) undo(node int, req Request) {
	if !c.background.start() {
		return
	}
	go func() {
		defer c.background.end()
		m := c.members[node]
		ctx, cancel := context.WithTimeout(context.Background(), c.opts.NodeTimeout)
		defer cancel()
		if r := m.call(ctx, req); r.Err != nil {
			m.janitor.add(m, req)
		}
	}()
}

// undoLater does so when a release that is under way has had its time.
func (c *Client) undoLater(node int, req Request) {
	if !c.background.start() {
		return
	}
	go func() {
		defer c.background.end()
		c.background.sleep(c.patience() / 10)
		c.undo(node, req)
	}()
}

// dropped remembers the claims that are being taken back. A node that has not
// heard of it yet answers the next attempt of this client with the value of
// its last one, and without this our own leftover would look like another's
// lock.
type dropped struct {
	mu   sync.Mutex
	reqs map[string]leftover // by value
}

func (d *dropped) add(l leftover, now time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.reqs == nil {
		d.reqs = map[string]leftover{}
	}
	// Looking through at doubling sizes keeps the cost constant on average.
	if n := len(d.reqs); n >= 64 && n&(n-1) == 0 {
		for value, l := range d.reqs {
			if l.until <= now {
				delete(d.reqs, value)
			}
		}
	}
	d.reqs[l.req.Value] = l
}

// key returns the release of a claim whose key may still be on a node.
func (d *dropped) key(value string) (Request, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l, ok := d.reqs[value]
	return l.req, ok && !l.released
}

// place returns the release of a claim whose place may still be in a queue.
func (d *dropped) place(value string) (Request, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l, ok := d.reqs[value]
	return l.req, ok
}

// janitor keeps at the releases that a node did not confirm, one at a time,
// until it does or the keys have run out by themselves.
type janitor struct {
	mu      sync.Mutex
	running bool
	pending []leftover
}

// leftover is a release that is owed to a node.
type leftover struct {
	req   Request
	until time.Duration // on the client's clock: when the key is gone anyway
	// released is set for a lease that its holder releases: the key goes by
	// that, and only its place in a queue may be left.
	released bool
}

// lateness is how long from now something of a request may stand on a node that
// does not answer. It may be carried out late, for as long as the token is in
// the node's window, whose clock may be off by half of that; and what it sets
// then lives for its time to live. Without a token there is no such bound, and
// a time limit is taken for one.
func (c *Client) lateness(req Request) time.Duration {
	d := req.TTL + c.opts.NodeTimeout
	if req.Token != 0 {
		d += req.Window + req.Window/2
	}
	return d
}

// maxLeftovers bounds what a janitor remembers; beyond it the oldest, which
// have the least time to run, are left to expire.
const maxLeftovers = 10_000

func (j *janitor) add(m *member, req Request) {
	c := m.client
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.pending) >= maxLeftovers {
		j.pending = j.pending[1:]
	}
	j.pending = append(j.pending, leftover{req: req, until: c.clock.Uptime() + c.lateness(req)})
	if !j.running && c.background.start() {
		j.running = true
		go j.work(m)
	}
}

func (j *janitor) next(now time.Duration) (leftover, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.pending) > 0 {
		l := j.pending[0]
		j.pending = j.pending[1:]
		if now < l.until {
			return l, true
		}
	}
	j.pending = nil
	j.running = false
	return leftover{}, false
}

func (j *janitor) work(m *member) {
	c := m.client
	defer c.background.end()
	delay := c.patience() / 4
	for {
		l, ok := j.next(c.clock.Uptime())
		if !ok {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), c.opts.NodeTimeout)
		r := m.call(ctx, l.req)
		cancel()
		if r.Err == nil {
			delay = c.patience() / 4
			continue
		}
		j.mu.Lock()
		j.pending = append([]leftover{l}, j.pending...)
		j.mu.Unlock()
		if !c.background.sleep(delay) {
			return
		}
		delay = min(2*delay, time.Second)
	}
}

// background counts the work that outlives the call that began it, or that may
// leave something behind, so that Close can wait for it.
type background struct {
	mu      sync.Mutex
	running int
	closed  bool
	closing chan struct{} // closed when Close begins
	idle    chan struct{} // closed when nothing runs any more after that
}

func newBackground() *background {
	return &background{closing: make(chan struct{}), idle: make(chan struct{})}
}

// start reports whether work may begin. After Close has begun, only work that
// follows from work under way may.
func (b *background) start() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed && b.running == 0 {
		return false
	}
	b.running++
	return true
}

func (b *background) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running--
	if b.closed && b.running == 0 {
		close(b.idle)
	}
}

// sleep waits, and reports false if Close has begun: then what could not be
// done is left to run out.
func (b *background) sleep(d time.Duration) bool {
	return wait(context.Background(), d, b.closing) == waitOver
}

// close has waiting callers give up, and counts as work itself until wait is
// called. It reports false if that was done before.
func (b *background) close() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.closed = true
	b.running++
	close(b.closing)
	return true
}

// wait waits until nothing runs any more, no longer than patience.
func (b *background) wait(patience time.Duration) {
	b.end()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-b.idle:
	case <-t.C:
	}
}
