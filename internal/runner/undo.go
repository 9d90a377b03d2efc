package runner

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/node"
)

// This file takes back what must not stand: grants of an attempt that failed,
// grants that came too late, keys of a lease that a node was not there to
// release. None of it runs on a caller's context.

// undo sends req, an OpRelease, to one node in the background, and leaves it
// to the node's janitor if that fails.
func (c *Cluster) undo(i int, req node.Request) {
	if !c.background.start() {
		return
	}
	go func() {
		defer c.background.end()
		m := c.members[i]
		ctx, cancel := context.WithTimeout(context.Background(), c.cfg.NodeTimeout)
		defer cancel()
		if r := m.Call(ctx, req); r.Err != nil {
			m.janitor.add(m, req)
		}
	}()
}

// undoLater does so when a release that is under way has had its time.
func (c *Cluster) undoLater(i int, req node.Request) {
	if !c.background.start() {
		return
	}
	go func() {
		defer c.background.end()
		c.background.sleep(c.patience() / 10)
		c.undo(i, req)
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

// remember keeps the release of a claim for as long as a late request may leave
// something of it on a node.
func (d *dropped) remember(c *Cluster, release node.Request, released bool) {
	now, left := c.clock.Uptime(), c.lateness(release)
	if released {
		left = min(left, latePlace)
	}
	d.add(leftover{req: release, until: now + left, released: released}, now)
}

// latePlace is how long after its release a lease may still be queued by a
// request that comes late. Longer than that is taken for never: the place then
// costs those behind it a second.
const latePlace = 10 * time.Second

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
func (d *dropped) key(value string) (node.Request, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l, ok := d.reqs[value]
	return l.req, ok && !l.released
}

// place returns the release of a claim whose place may still be in a queue.
func (d *dropped) place(value string) (node.Request, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l, ok := d.reqs[value]
	return l.req, ok
}

// janitor repeats the releases that a node did not confirm, until it does or the
// keys have run out by themselves: one at a time while the node does not answer,
// and several at once when it does.
type janitor struct {
	mu      sync.Mutex
	running bool
	pending []leftover

	// resting is set while it waits before the next try, and answers ends that
	// wait: the node has answered another request.
	resting atomic.Bool
	answers chan struct{}
}

// leftover is a release that is owed to a node.
type leftover struct {
	req   node.Request
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
func (c *Cluster) lateness(req node.Request) time.Duration {
	d := req.TTL + c.cfg.NodeTimeout
	if req.Token != 0 {
		d += req.Window + req.Window/2
	}
	return d
}

// maxLeftovers bounds what a janitor remembers; beyond it the oldest, which
// have the least time to run, are left to expire.
const maxLeftovers = 10_000

func (j *janitor) add(m *Member, req node.Request) {
	c := m.cluster
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.pending) >= maxLeftovers {
		j.pending = j.pending[1:]
	}
	j.pending = append(j.pending, leftover{req: req, until: c.clock.Uptime() + c.lateness(req)})
	if !j.running && c.background.start() {
		j.running = true
		if j.answers == nil {
			j.answers = make(chan struct{}, 1)
		}
		go j.work(m)
	}
}

// maxTogether is how many releases a janitor sends at once to a node that
// answers.
const maxTogether = 64

// next takes up to n releases out of those that are pending, and has the janitor
// stop if there are none.
func (j *janitor) next(now time.Duration, n int) (batch []leftover) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.pending) > 0 && len(batch) < n {
		if l := j.pending[0]; now < l.until {
			batch = append(batch, l)
		}
		j.pending = j.pending[1:]
	}
	if len(batch) == 0 {
		j.pending = nil
		j.running = false
	}
	return batch
}

func (j *janitor) work(m *Member) {
	c := m.cluster
	defer c.background.end()
	least := c.patience() / 4
	delay, together := least, 1
	for {
		start := c.clock.Uptime()
		batch := j.next(start, together)
		if len(batch) == 0 || c.isDone() {
			return
		}
		if j.send(m, batch) {
			delay, together = least, min(2*together, maxTogether)
			continue
		}
		// A try that ran into the time limit was wait enough. The next may go
		// over another connection, which works.
		if rest := delay - (c.clock.Uptime() - start); rest > 0 && !j.rest(c, rest, least) {
			return
		}
		delay, together = min(2*delay, time.Second), 1
	}
}

// send sends releases at once, and puts back those that the node did not
// confirm. It reports whether there were none.
func (j *janitor) send(m *Member, batch []leftover) bool {
	ctx, cancel := context.WithTimeout(context.Background(), m.cluster.cfg.NodeTimeout)
	defer cancel()
	failed := make([]bool, len(batch))
	var all sync.WaitGroup
	for i, l := range batch[1:] {
		all.Go(func() { failed[i+1] = m.Call(ctx, l.req).Err != nil })
	}
	failed[0] = m.Call(ctx, batch[0].req).Err != nil
	all.Wait()
	var again []leftover
	for i, l := range batch {
		if failed[i] {
			again = append(again, l)
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.pending = append(again, j.pending...)
	return len(again) == 0
}

// rest waits for d, or for least if the node answers meanwhile. It reports false
// if Close has begun.
func (j *janitor) rest(c *Cluster, d, least time.Duration) bool {
	least = min(d, least)
	select {
	case <-j.answers: // from before the last try
	default:
	}
	j.resting.Store(true)
	defer j.resting.Store(false)
	if !c.background.sleep(least) {
		return false
	}
	t := time.NewTimer(d - least)
	defer t.Stop()
	select {
	case <-t.C:
	case <-j.answers:
	case <-c.background.closing:
		return false
	}
	return true
}

// answered notes that the node has answered a request.
func (j *janitor) answered() {
	if j.resting.Load() {
		select {
		case j.answers <- struct{}{}:
		default:
		}
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
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-b.closing:
		return false
	}
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

// wait waits until nothing runs any more, or patience is over.
func (b *background) wait(patience <-chan time.Time) {
	b.end()
	select {
	case <-b.idle:
	case <-patience:
	}
}

// Go runs f in the background. Close waits for it.
func (c *Cluster) Go(f func()) {
	counted := c.background.start()
	go func() {
		f()
		if counted {
			c.background.end()
		}
	}()
}
