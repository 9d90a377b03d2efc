package casnode_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/clockless"
	"github.com/redlatch/redlatch/node/casnode"
)

// hall is a store with places, of clients whose statements take a while.
type hall struct {
	*clockless.Shelf
	takes time.Duration

	mu                                 sync.Mutex // guards all fields below
	reads, puts, drops, swaps, refused int
}

type desk struct {
	clockless.Placed
	*hall
}

func (h *hall) open() *casnode.Node {
	return casnode.New(&desk{clockless.Placed{Timed: clockless.Timed{Store: h.Open()}}, h}, nil)
}

func (d *desk) count(n *int) {
	d.hall.mu.Lock()
	*n++
	d.hall.mu.Unlock()
	time.Sleep(d.takes / 2)
}

func (d *desk) Read(ctx context.Context, name string) (casnode.Snapshot, error) {
	d.count(&d.reads)
	defer time.Sleep(d.takes / 2)
	return d.Placed.Read(ctx, name)
}

func (d *desk) Put(ctx context.Context, p casnode.Place, again bool) (casnode.Snapshot, error) {
	d.count(&d.puts)
	defer time.Sleep(d.takes / 2)
	return d.Placed.Put(ctx, p, again)
}

func (d *desk) Drop(ctx context.Context, p casnode.Place) (casnode.Snapshot, error) {
	d.count(&d.drops)
	defer time.Sleep(d.takes / 2)
	return d.Placed.Drop(ctx, p)
}

func (d *desk) Swap(ctx context.Context, seen casnode.Snapshot, w casnode.Write) (bool, casnode.Snapshot, error) {
	d.count(&d.swaps)
	defer time.Sleep(d.takes / 2)
	done, present, err := d.Placed.Swap(ctx, seen, w)
	if !done {
		d.hall.mu.Lock()
		d.refused++
		d.hall.mu.Unlock()
	}
	return done, present, err
}
func (d *desk) String() string { return d.Placed.String() }
func (d *desk) Close() error   { return d.Placed.Close() }

func TestCrowdOnPlaces(t *testing.T) {
	for _, c := range []struct {
		clients  int
		held     time.Duration
		deadline time.Duration
	}{{1, 0, time.Minute}, {2, time.Millisecond, time.Minute}, {16, time.Millisecond, time.Minute}, {40, 20 * time.Millisecond, 200 * time.Millisecond}, {40, 20 * time.Millisecond, time.Second}, {200, 5 * time.Millisecond, time.Minute}} {
		synctest.Test(t, func(t *testing.T) {
			defer time.Sleep(time.Minute)
			h := &hall{Shelf: clockless.New(nil), takes: time.Millisecond}
			ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
			defer stop()
			got := make([]int, c.clients)
			var mu sync.Mutex
			var failed, lost int
			var crowd sync.WaitGroup
			for i := range c.clients {
				cl, err := redlatch.New([]redlatch.Node{h.open()}, &redlatch.Options{AssumeFresh: true})
				check.Must(t, err)
				defer cl.Close()
				crowd.Go(func() {
					for ctx.Err() == nil {
						own, end := context.WithTimeout(ctx, c.deadline)
						l, err := cl.Lock(own, "job", nil)
						end()
						if err != nil {
							continue
						}
						got[i]++
						time.Sleep(c.held)
						if err := l.Release(context.Background()); err != nil {
							t.Log(err)
							mu.Lock()
							failed++
							mu.Unlock()
						}
					}
				})
			}
			crowd.Wait()
			sum, least, most := 0, 1<<30, 0
			for _, n := range got {
				sum += n
				least, most = min(least, n), max(most, n)
			}
			t.Logf("%d clients, %v held, %v: %d locks, %d to %d each, %d failed, %d lost; reads %d puts %d drops %d swaps %d refused %d (%.1f writes a lock)", c.clients, c.held, c.deadline, sum, least, most, failed, lost, h.reads, h.puts, h.drops, h.swaps, h.refused, float64(h.puts+h.drops+h.swaps)/float64(max(sum, 1)))
		})
	}
}
