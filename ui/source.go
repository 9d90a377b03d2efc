package ui

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
)

// source surveys the nodes for all viewers. It does so while somebody watches,
// and when a page is asked for.
type source struct {
	admin    *admin.Admin
	interval time.Duration
	most     int // viewers at once
	ctx      context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup

	mu      sync.Mutex
	last    *snapshot
	flight  chan struct{} // closed when the survey in flight is over; nil if there is none
	viewers map[*viewer]bool
	polling bool

	history history // only the survey in flight uses it
}

// viewer is somebody who watches. A viewer that is slow misses surveys, and
// never delays others.
type viewer struct{ news chan *snapshot }

var (
	errFull   = errors.New("too many viewers")
	errClosed = errors.New("the page is closed")
)

// surveyLimit limits one survey.
const surveyLimit = time.Minute

// close ends all surveys, and waits for them.
func (s *source) close() {
	s.mu.Lock()
	s.cancel() // with the lock held, so that nothing starts after it
	s.mu.Unlock()
	s.running.Wait()
}

// join lets a viewer watch.
func (s *source) join() (*viewer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ctx.Err() != nil:
		return nil, errClosed
	case len(s.viewers) >= s.most:
		return nil, errFull
	}
	v := &viewer{news: make(chan *snapshot, 1)}
	s.viewers[v] = true
	if !s.polling {
		s.polling = true
		s.running.Go(s.poll)
	}
	return v, nil
}

// leave ends the watching of a viewer.
func (s *source) leave(v *viewer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.viewers, v)
}

// poll surveys the nodes until nobody watches.
func (s *source) poll() {
	for {
		began := time.Now()
		snap := s.fresh(s.ctx, 0)
		s.mu.Lock()
		if s.ctx.Err() != nil || len(s.viewers) == 0 {
			s.polling = false
			s.mu.Unlock()
			return
		}
		for v := range s.viewers {
			v.offer(snap)
		}
		s.mu.Unlock()
		select {
		case <-time.After(s.pause(snap) - time.Since(began)):
		case <-s.ctx.Done():
		}
	}
}

// pause returns the time from one survey to the next: long surveys are made
// less often.
func (s *source) pause(snap *snapshot) time.Duration {
	if snap == nil {
		return s.interval
	}
	return max(s.interval, 4*snap.took)
}

// offer gives a viewer the newest snapshot, in place of one that it has not
// taken yet.
func (v *viewer) offer(snap *snapshot) {
	if snap == nil {
		return
	}
	select {
	case <-v.news:
	default:
	}
	v.news <- snap // only the poller sends, so there is room
}

// fresh returns a snapshot that is not older than age, or a survey takes
// longer: it waits for the one in flight, or starts one. If ctx ends before, it
// returns the last snapshot, whatever its age, or nil.
func (s *source) fresh(ctx context.Context, age time.Duration) *snapshot {
	s.mu.Lock()
	if s.last != nil && age > 0 && time.Since(s.last.at) <= max(age, 4*s.last.took) || s.ctx.Err() != nil {
		defer s.mu.Unlock()
		return s.last
	}
	flight := s.flight
	if flight == nil {
		flight = make(chan struct{})
		s.flight = flight
		s.running.Go(func() { s.survey(flight) })
	}
	s.mu.Unlock()
	select {
	case <-flight:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// survey asks the nodes for everything, once.
func (s *source) survey(done chan struct{}) {
	ctx, cancel := context.WithTimeout(s.ctx, surveyLimit)
	defer cancel()
	began := time.Now()
	pulse := s.admin.Probe(ctx)
	found, err := s.admin.ListAnswering(ctx, pulse)
	snap := s.newSnapshot(pulse)
	snap.at, snap.took, snap.err = time.Now(), time.Since(began), err
	snap.take(found)
	snap.gone = s.lookAt(s.history.vanished(snap))
	s.mu.Lock()
	defer s.mu.Unlock()
	defer close(done)
	s.flight = nil
	if s.ctx.Err() != nil {
		return // it was cut short
	}
	snap.nodes = healths(pulse, snap.at)
	for _, n := range found.Failed {
		snap.failed(n.Node, n.Err)
	}
	snap.settle(s.last)
	switch {
	case err == nil:
		snap.asOf = snap.at
	case s.last != nil && !s.last.asOf.IsZero():
		snap.asOf, snap.locks = s.last.asOf, s.last.locks
	}
	s.history.note(snap, s.pause(s.last))
	snap.lates, snap.trend = s.history.events, s.history.trend
	s.last = snap
}

func (s *source) newSnapshot(pulse *admin.Pulse) *snapshot {
	return &snapshot{pulse: pulse, look: s.look, details: map[string]*detail{}, made: map[view]*parts{}}
}

// take keeps what a survey found about locks.
func (s *snapshot) take(found *admin.Survey) {
	s.locks, s.broken = make([]lock, 0, len(found.Locks)), map[string]redlatch.Token{}
	for i := range found.Locks {
		l := &found.Locks[i]
		s.locks = append(s.locks, newLock(l, s.at))
		if l.Broken != 0 {
			s.broken[l.Name] = l.Broken
		}
	}
	for _, l := range found.Broken {
		s.broken[l.Name] = l.Broken
	}
}

// lookAt asks the nodes about locks, all at once. Of a lock that they do not tell
// about there is nil.
func (s *source) lookAt(names []string) map[string]*admin.LockState {
	states := make([]*admin.LockState, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() { states[i], _ = s.look(name) })
	}
	all.Wait()
	found := map[string]*admin.LockState{}
	for i, name := range names {
		found[name] = states[i]
	}
	return found
}

// failed notes that a node has answered the probe, and did not list its locks.
func (s *snapshot) failed(name string, err error) {
	for i := range s.nodes {
		if n := &s.nodes[i]; n.name == name && n.health != noAnswer {
			n.health, n.why = noAnswer, "it does not list its locks: "+errorText(err)
		}
	}
}

// look asks the nodes for everything about one lock.
func (s *source) look(name string) (*admin.LockState, error) {
	ctx, cancel := context.WithTimeout(s.ctx, surveyLimit)
	defer cancel()
	return s.admin.Show(ctx, name)
}
