package runner_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
)

// pooled is a node over a pool of connections. A connection that went silent is
// closed when a request on it has reached its time limit.
type pooled struct {
	*locktest.Link
	mu     sync.Mutex
	silent int
}

func (n *pooled) Do(ctx context.Context, req node.Request) (node.Reply, error) {
	n.mu.Lock()
	silent := n.silent > 0
	if silent {
		n.silent--
	}
	n.mu.Unlock()
	if silent {
		<-ctx.Done()
		return node.Reply{}, ctx.Err()
	}
	return n.Link.Do(ctx, req)
}

// TestReleaseIsRepeatedUntilAConnectionIsFoundThatWorks has the connections to
// a minority go silent while a lock is held. Each try costs a time limit, so
// the first tries follow each other without a delay.
func TestReleaseIsRepeatedUntilAConnectionIsFoundThatWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, silent = 250 * time.Millisecond, 4
		links, nodes := locktest.NewLinks(t, 3)
		pool := &pooled{Link: links[2]}
		nodes[2] = pool
		c := locktest.NewClient(t, nodes, redlatch.Options{NodeTimeout: limit})
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{TTL: 30 * time.Second, NoKeepAlive: true})
		synctest.Wait()
		pool.mu.Lock()
		pool.silent = silent
		pool.mu.Unlock()
		start := time.Now()
		must(t, l.Release(t.Context()))
		for links[2].Holder(t, "job") != "" && time.Since(start) < time.Minute {
			time.Sleep(time.Millisecond)
		}
		if took := time.Since(start); took > silent*limit+limit/10 {
			t.Errorf("the key was gone %v after the release, want it after %d time limits of %v", took, silent, limit)
		}
	})
}

// TestReleaseIsRepeatedWhenTheNodeAnswersAnother has a node come back after a
// while, when a release is repeated only about once a second.
func TestReleaseIsRepeatedWhenTheNodeAnswersAnother(t *testing.T) {
	for away := 5 * time.Second; away < 6500*time.Millisecond; away += 50 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			links, nodes := locktest.NewLinks(t, 3)
			c := locktest.NewClient(t, nodes, redlatch.Options{})
			l := locktest.MustLock(t, c, "job", redlatch.LockOptions{TTL: 30 * time.Second, NoKeepAlive: true})
			synctest.Wait()
			links[2].Set(func(l *locktest.Link) { l.Refuse = locktest.ErrUnreachable })
			must(t, l.Release(t.Context()))
			time.Sleep(away)
			links[2].Set(func(l *locktest.Link) { l.Refuse = nil })
			locktest.MustLock(t, c, "another", redlatch.LockOptions{})
			time.Sleep(100 * time.Millisecond)
			locktest.WantFree(t, links, "job")
		})
	}
}

// TestReleasesThatAreOwedGoTogether has a node come back when many releases to
// it are pending. It answers each in 100 ms.
func TestReleasesThatAreOwedGoTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const leases = 1000
		links, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		var held []*redlatch.Lease
		for i := range leases {
			held = append(held, locktest.MustLock(t, c, fmt.Sprint("job ", i), redlatch.LockOptions{TTL: 30 * time.Second, NoKeepAlive: true}))
		}
		synctest.Wait()
		links[2].Set(func(l *locktest.Link) { l.Refuse = locktest.ErrUnreachable })
		for _, l := range held {
			must(t, l.Release(t.Context()))
		}
		synctest.Wait()
		links[2].Set(func(l *locktest.Link) { l.Refuse, l.Out = nil, 100*time.Millisecond })
		time.Sleep(5 * time.Second)
		for i := range leases {
			locktest.WantFree(t, links, fmt.Sprint("job ", i))
		}
	})
}
