package redlatch

import (
	"context"
	"errors"
	"sync"
	"time"
)

// lines keep the callers of one client that want the same name in order: one
// asks the nodes, the others stand behind it, and cost no node anything. Who
// asks does so with the ticket of its arrival, so callers in other processes
// are neither overtaken nor kept waiting by it.
type lines struct {
	mu     sync.Mutex
	byName map[string]*line
}

// line is the callers behind the one that asks, in the order of their arrival.
type line struct {
	behind []chan struct{}
	outage bool // the one that asks waits for nodes, not for a holder
}

// enter returns when it is the caller's turn to ask, with the line that it is to
// leave when that has come to an end. It returns none if the caller is to ask
// beside it: because there is an outage of which it must be told, or because
// its wait is over, and it is to be told who has the lock.
func (ls *lines) enter(ctx context.Context, name string, until time.Duration, c *Client) (*line, error) {
	ls.mu.Lock()
	l := ls.byName[name]
	if l == nil {
		if ls.byName == nil {
			ls.byName = map[string]*line{}
		}
		l = &line{}
		ls.byName[name] = l
		ls.mu.Unlock()
		return l, nil
	}
	if l.outage {
		ls.mu.Unlock()
		return nil, nil
	}
	turn := make(chan struct{})
	l.behind = append(l.behind, turn)
	ls.mu.Unlock()

	var over <-chan time.Time
	if until > 0 {
		timer := time.NewTimer(until - c.clock.Uptime())
		defer timer.Stop()
		over = timer.C
	}
	var err error
	select {
	case <-turn:
		return l, nil
	case <-over:
	case <-ctx.Done():
		err = endedError(ctx, nil)
	case <-c.background.closing:
		err = ErrClosed
	}
	if !ls.giveUp(l, turn) {
		// Our turn came in the same moment.
		if err == nil {
			return l, nil
		}
		ls.leave(name, l, nil)
	}
	return nil, err
}

// giveUp takes a caller out of the line. It reports false if its turn has come.
func (ls *lines) giveUp(l *line, turn chan struct{}) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for i, t := range l.behind {
		if t == turn {
			l.behind = append(l.behind[:i], l.behind[i+1:]...)
			return true
		}
	}
	return false
}

// leave lets the next one ask; all of them if there was nobody to ask: one after
// the other, the last of them would be told of an outage late.
func (ls *lines) leave(name string, l *line, err error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	switch {
	case l == nil || ls.byName[name] != l: // all were let go before
	case errors.Is(err, ErrNoQuorum):
		for _, turn := range l.behind {
			close(turn)
		}
		l.behind = nil
		fallthrough
	case len(l.behind) == 0:
		delete(ls.byName, name)
	default:
		close(l.behind[0])
		l.behind = l.behind[1:]
	}
}

// note says whether the one that asks finds a quorum of nodes. Those who stand
// behind it came while there was one, and wait like it; those who come now do
// not.
func (ls *lines) note(l *line, outage bool) {
	if l == nil {
		return
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l.outage = outage
}
