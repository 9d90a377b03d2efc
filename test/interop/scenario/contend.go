//go:build unix

package scenario

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redlatch/redlatch"

	"github.com/redlatch/redlatch/test/interop/foreign"
)

const (
	// contendFor is how long both sides contend at least.
	contendFor = 2 * time.Second
	// contendTTL is far above the time of one hold, and short enough that keys
	// left behind by a failed try expire during the run.
	contendTTL = 3 * time.Second
	// turnsEach is how often each side must have had the lock.
	turnsEach = 5
)

// referee counts who is inside. A section lasts from the answer that granted
// the lock to the order that releases it, on this process's own clock, so that
// a client that is counted held the lock then.
type referee struct {
	mu     sync.Mutex
	inside string
	since  time.Time
	turns  map[string]int
	clash  string
}

func (r *referee) enter(side string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// A client that was delayed for the whole TTL of its lock has lost it.
	if r.inside != "" && r.clash == "" && time.Since(r.since) < contendTTL/2 {
		r.clash = fmt.Sprintf("%s had the lock while %s had it", side, r.inside)
	}
	r.inside, r.since = side, time.Now()
	r.turns[side]++
}

func (r *referee) leave(side string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inside == side {
		r.inside = ""
	}
}

func (r *referee) over(began time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	enough := r.turns["redlatch"] >= turnsEach && r.turns["it"] >= turnsEach
	return r.clash != "" || enough && time.Since(began) > contendFor
}

// contention: processes of both sides want one lock, and no two have it at
// once.
func contention(s *Stage) Cell {
	second, err := s.process()
	s.must(err == nil, "does not start: %v", err)
	defer second.Kill()

	ctx, cancel := context.WithTimeout(s.ctx, soon)
	defer cancel()
	r := &referee{turns: map[string]int{}}
	began := time.Now()
	var all sync.WaitGroup
	fault := make(chan failure, 4) // one from each
	for _, p := range []*foreign.Process{s.it, second} {
		all.Go(func() { s.theirTurns(ctx, r, p, began, fault) })
	}
	for _, c := range []*redlatch.Client{s.locks, s.other} {
		all.Go(func() { s.ourTurns(ctx, r, c, began, fault) })
	}
	all.Wait()
	select {
	case f := <-fault:
		panic(f)
	default:
	}
	s.must(r.clash == "", "%s", r.clash)
	s.weMust(r.turns["redlatch"] >= turnsEach, "had the lock %d times in %v, the other %d times", r.turns["redlatch"], soon, r.turns["it"])
	// A client that the keys of its failed attempts refuse may have none.
	s.must(r.turns["it"] >= turnsEach || s.client.Slow, "had the lock %d times in %v, redlatch %d times", r.turns["it"], soon, r.turns["redlatch"])
	return Cell{Holds, "never two"}
}

func (s *Stage) theirTurns(ctx context.Context, r *referee, p *foreign.Process, began time.Time, fault chan<- failure) {
	for ctx.Err() == nil && !r.over(began) {
		if a := p.Acquire(s.name, contendTTL); a.OK() {
			r.enter("it")
			time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
			r.leave("it")
			if a := p.Release(); !a.OK() {
				fault <- failure{text: "cannot release what it holds: " + a.String()}
				return
			}
		}
		time.Sleep(time.Duration(10+rand.IntN(40)) * time.Millisecond)
	}
}

func (s *Stage) ourTurns(ctx context.Context, r *referee, c *redlatch.Client, began time.Time, fault chan<- failure) {
	for ctx.Err() == nil && !r.over(began) {
		lease, err := c.Lock(ctx, s.name, &redlatch.LockOptions{TTL: contendTTL, Wait: soon})
		if err != nil {
			continue // the other side may be faster; the counts show whether it always is
		}
		r.enter("redlatch")
		time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
		r.leave("redlatch")
		if err := lease.Release(s.ctx); errors.Is(err, redlatch.ErrLost) {
			fault <- failure{text: "takes it from redlatch"}
			return
		} else if err != nil {
			fault <- failure{ours: true, text: "cannot release what it holds: " + err.Error()}
			return
		}
	}
}
