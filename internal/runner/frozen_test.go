package runner_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
)

// TestGrantOfANodeThatWasFrozenForLongIsUndone freezes a node for longer than a
// lock lives. It has a request in its buffer, and executes it when it is
// thawed. Meanwhile nothing new can be sent to it: a new connection gets no
// greeting.
func TestGrantOfANodeThatWasFrozenForLongIsUndone(t *testing.T) {
	for _, n := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			const ttl = 3 * time.Second
			links, c := locktest.New(t, n, redlatch.Options{})
			links[0].Freeze()
			links[0].Set(func(l *locktest.Link) {
				l.Hook = func(req node.Request) {
					if req.Op == node.OpRelease {
						l.Set(func(l *locktest.Link) { l.Refuse = errors.New("i/o timeout") })
					}
				}
			})
			l, err := c.TryLock(t.Context(), "job", &redlatch.LockOptions{TTL: ttl})
			if n == 1 {
				locktest.WantErr(t, err, redlatch.ErrNoQuorum)
			} else if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if l != nil {
				must(t, l.Release(t.Context()))
			}
			time.Sleep(3 * ttl) // within the token window, or the node would refuse the token
			links[0].Thaw()
			synctest.Wait()
			if links[0].Holder(t, "job") == "" {
				t.Fatal("the request was not carried out late: nothing is shown")
			}
			links[0].Set(func(l *locktest.Link) { l.Refuse, l.Hook = nil, nil })
			time.Sleep(ttl / 2)
			locktest.WantFree(t, links, "job")
		})
	}
}

// worded is a node whose driver has its own error text for a call that reached
// its time limit.
type worded struct {
	*locktest.Link
	timeout error
}

func (n worded) Do(ctx context.Context, req node.Request) (node.Reply, error) {
	reply, err := n.Link.Do(ctx, req)
	if errors.Is(err, context.DeadlineExceeded) {
		err = n.timeout
	}
	return reply, err
}

// TestReplyThatNeverComesIsATimeoutWhateverTheDriverSays compares drivers: each
// must give the same error, after the same number of requests and the same
// time. A connection that was cut is different: the node is asked again at
// once.
func TestReplyThatNeverComesIsATimeoutWhateverTheDriverSays(t *testing.T) {
	const limit = time.Second
	for _, timeout := range []error{
		context.DeadlineExceeded,
		os.ErrDeadlineExceeded,
		&net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded},
		fmt.Errorf("while connecting: %w", context.DeadlineExceeded),
	} {
		synctest.Test(t, func(t *testing.T) {
			links, _ := locktest.NewLinks(t, 1)
			c := locktest.NewClient(t, []redlatch.Node{worded{links[0], timeout}}, redlatch.Options{NodeTimeout: limit})
			links[0].Freeze()
			start := time.Now()
			_, err := c.Lock(t.Context(), "job", nil)
			locktest.WantErr(t, err, redlatch.ErrNoQuorum, redlatch.ErrNodeTimeout)
			if errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%q: %v is taken for the end of the caller's context", timeout, err)
			}
			if n := links[0].Count(node.OpAcquire); n != 3 {
				t.Errorf("%q: the node was asked %d times, want 3", timeout, n)
			}
			if took := time.Since(start); took < 3*limit || took >= 4*limit {
				t.Errorf("%q: it took %v, want three time limits and the delays between them", timeout, took)
			}
		})
	}
}
