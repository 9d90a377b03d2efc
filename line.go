package redlatch

import (
	"context"
	"slices"
	"sync"
	"time"
)

// lines keep the callers of one client that want the same name in order: one
// asks the nodes, the others wait behind it, and cost no node anything. The one
// that asks does so with the ticket of its arrival, so callers in other processes
// are neither overtaken nor kept waiting by it.
type lines struct {
	mu     sync.Mutex
	byName map[string]*line
}

// line is the callers behind the one that asks, in the order of their arrival.
type line struct {
	behind []*standing
	outage bool // the one that asks finds too few nodes
}

// standing is one caller in a line.
type standing struct {
	a *attempt
	// turn is sent the line when it is our turn to ask, and nil if we are to ask
	// beside it.
	turn chan *line
}

// enter returns when it is the caller's turn to ask, with the line that it is to
// leave when that has come to an end. It returns none if the caller is to ask
// beside it: because its wait is over, and it is to be told who has the lock; or
// because there is an outage, for which it has a patience of its own.
func (ls *lines) enter(ctx context.Context, key string, a *attempt) (*line, error) {
	c := a.c
	ls.mu.Lock()
	l := ls.byName[key]
	if l == nil {
		if ls.byName == nil {
			ls.byName = map[string]*line{}
		}
		l = &line{}
		ls.byName[key] = l
		ls.mu.Unlock()
		return l, nil
	}
	if l.outage && a.unbounded() {
		ls.mu.Unlock()
		return nil, nil
	}
	me := &standing{a: a, turn: make(chan *line, 1)}
	l.behind = append(l.behind, me)
	ls.mu.Unlock()

	var over <-chan time.Time
	if until := a.until(); until > 0 {
		timer := time.NewTimer(until - c.clock.Uptime())
		defer timer.Stop()
		over = timer.C
	}
	var err error
	select {
	case mine := <-me.turn:
		return mine, nil
	case <-over:
	case <-ctx.Done():
		err = endedError(ctx, nil)
	case <-c.background.closing:
		err = ErrClosed
	}
	if !ls.giveUp(l, me) {
		// Our turn came in the same moment.
		mine := <-me.turn
		if err == nil {
			return mine, nil
		}
		ls.leave(key, mine)
	}
	return nil, err
}

// giveUp takes a caller out of the line. It reports false if its turn has come.
func (ls *lines) giveUp(l *line, me *standing) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	i := slices.Index(l.behind, me)
	if i >= 0 {
		l.behind = slices.Delete(l.behind, i, i+1)
	}
	return i >= 0
}

// leave lets the next one ask.
func (ls *lines) leave(key string, l *line) {
	if l == nil {
		return
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if len(l.behind) == 0 {
		delete(ls.byName, key)
		return
	}
	l.behind[0].turn <- l
	l.behind = l.behind[1:]
}

// note says whether the one that asks finds too few nodes. Those behind it who
// set no bound then ask beside it, each with its own patience; the others wait
// as it does.
func (ls *lines) note(l *line, outage bool) {
	if l == nil {
		return
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l.outage = outage
	if !outage {
		return
	}
	l.behind = slices.DeleteFunc(l.behind, func(s *standing) bool {
		if s.a.unbounded() {
			s.turn <- nil
		}
		return s.a.unbounded()
	})
}
