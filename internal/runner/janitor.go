package runner

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// janitor repeats the releases that a node did not confirm, until it confirms
// them or the keys have expired. It sends one at a time while the node does not
// answer, and several at once when it does. When Close begins it tries one more,
// and stops if that is not confirmed.
type janitor struct {
	mu      sync.Mutex
	running bool
	pending []leftover

	// resting is set while the janitor waits before the next try. answers ends
	// that wait: the node has answered another request.
	resting atomic.Bool
	answers chan struct{}
}

// maxLeftovers is how many releases a janitor stores. Beyond that it drops the
// oldest, whose keys expire first.
const maxLeftovers = 10_000

func (j *janitor) add(m *Member, req node.Request) {
	c := m.cluster
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.pending) >= maxLeftovers {
		j.pending = j.pending[1:]
	}
	j.pending = append(j.pending, leftover{req: req, until: c.clock.Uptime() + protocol.Lateness(&req, c.cfg.NodeTimeout)})
	if j.answers == nil {
		j.answers = make(chan struct{}, 1)
	}
	j.running = j.running || c.background.run(func() { j.work(m) })
}

// maxTogether is how many releases a janitor sends at once to a node that
// answers.
const maxTogether = 64

// next removes up to n pending releases. If there are none, the janitor stops.
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
	least := c.patience() / 4
	delay, together := least, 1
	for {
		closing, start := c.Closing(), c.clock.Uptime()
		batch := j.next(start, together)
		if len(batch) == 0 || c.isDone() {
			return
		}
		if j.send(m, batch) {
			delay, together = least, min(2*together, maxTogether)
			continue
		}
		if closing && together == 1 {
			return // the node is still away: the keys expire by themselves
		}
		// A try that reached the time limit needs no further delay. The next
		// try may use another connection, which works.
		if rest := delay - (c.clock.Uptime() - start); rest > 0 {
			j.rest(c, rest, least)
		}
		delay, together = min(2*delay, time.Second), 1
	}
}

// send sends releases concurrently, and keeps those that the node did not
// confirm. It reports whether all were confirmed.
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

// rest waits for d, or for least if the node answers meanwhile. Close ends it:
// the node may answer again, and nobody repeats the releases after Close.
func (j *janitor) rest(c *Cluster, d, least time.Duration) {
	least = min(d, least)
	select {
	case <-j.answers: // from before the last try
	default:
	}
	j.resting.Store(true)
	defer j.resting.Store(false)
	if !c.background.sleep(least) {
		return
	}
	t := time.NewTimer(d - least)
	defer t.Stop()
	select {
	case <-t.C:
	case <-j.answers:
	case <-c.background.open.Done():
	}
}

// logUnconfirmed logs at the end of Close how many releases the node has not
// confirmed; those in flight too, unless nothing runs any more.
func (m *Member) logUnconfirmed(idle bool) {
	m.janitor.mu.Lock()
	left := len(m.janitor.pending)
	m.janitor.mu.Unlock()
	if !idle {
		left += int(m.inflight.Load())
	}
	if left > 0 {
		m.cluster.log.Warn("redlatch: closed without an answer of a node; locks that are left there expire after their TTL", "node", m.name, "requests", left)
	}
}

// answered records that the node has answered a request.
func (j *janitor) answered() {
	if j.resting.Load() {
		select {
		case j.answers <- struct{}{}:
		default:
		}
	}
}
