package casnode

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch/internal/nodestate"
	"github.com/redlatch/redlatch/node"
)

// distant is a table whose statements take a while, and end with their context.
type distant struct {
	*table
	delay time.Duration
}

func (s *distant) Read(ctx context.Context, name string) (Snapshot, error) {
	if err := s.pass(ctx); err != nil {
		return Snapshot{}, err
	}
	return s.table.Read(ctx, name)
}

func (s *distant) Swap(ctx context.Context, seen Snapshot, w Write) (bool, Snapshot, error) {
	if err := s.pass(ctx); err != nil {
		return false, Snapshot{}, err
	}
	return s.table.Swap(ctx, seen, w)
}

func (s *distant) pass(ctx context.Context) error {
	select {
	case <-time.After(s.delay):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// atOnce sends requests for as many names at once, with a time limit each, and
// returns the errors.
func atOnce(n *Node, names int, limit time.Duration, request func(name string) node.Request) (failed []error) {
	var mu sync.Mutex // guards failed
	var wg sync.WaitGroup
	for i := range names {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			defer cancel()
			r, err := n.Do(ctx, request(fmt.Sprint("job ", i)))
			if err == nil && r.Status != node.Granted {
				err = fmt.Errorf("answered %q", r.Status)
			}
			if err != nil {
				mu.Lock()
				failed = append(failed, err)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return failed
}

// TestReleaseWaitsForItsTurnForLongerThanItsTimeLimit has two hundred releases at
// once, five at a time: the last ones wait for three of their time limits.
func TestReleaseWaitsForItsTurnForLongerThanItsTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &distant{table: newTable(time.Now)}
		n := New(s, &Options{Requests: 5})
		const names, limit = 200, time.Second
		token := node.Token(time.Now().UnixMicro())
		take := func(name string) node.Request {
			req := acquire("one", token)
			req.Name = name
			return req
		}
		if failed := atOnce(n, names, limit, take); len(failed) > 0 {
			t.Fatalf("%d of %d acquires failed, the first with: %v", len(failed), names, failed[0])
		}
		s.delay = 40 * time.Millisecond
		begin := time.Now()
		failed := atOnce(n, names, limit, func(name string) node.Request {
			req := take(name)
			req.Op = node.OpRelease
			return req
		})
		if len(failed) > 0 {
			t.Errorf("%d of %d releases failed, the first with: %v", len(failed), names, failed[0])
		}
		if took := time.Since(begin); took != 3200*time.Millisecond {
			t.Errorf("the releases took %v; two statements each take 40ms, five at a time", took)
		}
		// Acquires end in time.
		token++
		begin = time.Now()
		failed = atOnce(n, names, limit, take)
		if took := time.Since(begin); took > limit || len(failed) == 0 {
			t.Errorf("%d acquires failed after %v", len(failed), took)
		}
		for _, err := range failed {
			if !errors.Is(err, node.ErrUnsent) && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("an acquire: %v", err)
			}
		}
	})
}

// TestWhoLeavesPassesOnUnlessAnotherHoldsTheName goes through what who leaves may find.
func TestWhoLeavesPassesOnUnlessAnotherHoldsTheName(t *testing.T) {
	now := time.UnixMicro(1e15)
	for i, e := range []nodestate.Entry{
		{Holders: nodestate.Holders{{Value: "q", Until: now.Add(1e9)}}}, // and in no other case
		{Holders: nodestate.Holders{{Value: "q", Until: now.Add(1e9)}}, Queue: nodestate.Queue{Head: "p", Lapses: now}},
		{Holders: nodestate.Holders{{Value: "p", Until: now.Add(1e9)}}}, {Holders: nodestate.Holders{{Value: "q", Until: now}}}, {},
		{Holders: nodestate.Holders{{Value: "q", Until: now.Add(1e9), Share: node.Share{Mode: node.Shared}}}},
	} {
		s := Snapshot{Now: now, Row: Row{State: e.AppendTo(nil)}}
		if s.Passes(Place{Waiter: "0-0-0-E0"}) != (i > 0) {
			t.Error(e)
		}
	}
}
