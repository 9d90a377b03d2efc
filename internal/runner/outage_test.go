package runner_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
)

// outage has two of three links fail for d from now on; for ever, if d is 0.
func outage(links locktest.Links, d time.Duration) {
	links[1:3].Cut()
	if d > 0 {
		time.AfterFunc(d, func() {
			links[1:3].Mend()
		})
	}
}

func TestLockWaitsForServersUntilItsBound(t *testing.T) {
	for name, ask := range map[string]func(c *redlatch.Client) (*redlatch.Lease, error){
		"wait": func(c *redlatch.Client) (*redlatch.Lease, error) {
			return c.Lock(context.Background(), "job", &redlatch.LockOptions{Wait: 10 * time.Second})
		},
		"context": func(c *redlatch.Client) (*redlatch.Lease, error) {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			return c.Lock(ctx, "job", nil)
		},
	} {
		locktest.Run(t, name, func(t *testing.T) {
			links, c := locktest.New(t, 3, redlatch.Options{})
			outage(links, 7*time.Second)
			start := time.Now()
			l, err := ask(c)
			must(t, err)
			locktest.WantTook(t, start, 7*time.Second, 7200*time.Millisecond)
			l.Release(t.Context())

			outage(links, 0)
			start = time.Now()
			_, err = ask(c)
			want := redlatch.ErrNoQuorum
			if name == "context" {
				want = context.DeadlineExceeded
			}
			if !errors.Is(err, want) || !strings.Contains(err.Error(), "no quorum (2 of 3 needed)") {
				t.Errorf("got %v, want %v, with what it waited for", err, want)
			}
			locktest.WantTook(t, start, 10*time.Second, 10*time.Second)
		})
	}
}

// TestCrowdIsNoOutage has a node answer for a while that others wrote at each try.
func TestCrowdIsNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, c := locktest.New(t, 1, redlatch.Options{})
		locktest.MustLock(t, c, "job", redlatch.LockOptions{}).Release(t.Context())
		for _, why := range []error{node.ErrUnsent, context.DeadlineExceeded} {
			links.Set(func(l *locktest.Link) { l.Refuse = fmt.Errorf("%w (%w): %w", node.ErrContended, node.ErrUnsent, why) })
			time.AfterFunc(9*time.Second, links.Mend)
			start := time.Now()
			time.AfterFunc(8*time.Second, func() {
				if !c.Nodes()[0].Up {
					t.Error("the node is said to fail")
				}
			})
			locktest.MustLock(t, c, "job", redlatch.LockOptions{}).Release(t.Context())
			locktest.WantTook(t, start, 9*time.Second, 9500*time.Millisecond)
		}
	})
}

func TestLockWithNoBoundHasPatienceWithAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, c := locktest.New(t, 3, redlatch.Options{})
		outage(links, redlatch.OutagePatience-300*time.Millisecond)
		locktest.MustLock(t, c, "job", redlatch.LockOptions{}).Release(t.Context())

		outage(links, 0)
		start := time.Now()
		_, err := c.Lock(t.Context(), "job", nil)
		locktest.WantErr(t, err, redlatch.ErrNoQuorum)
		locktest.WantTook(t, start, redlatch.OutagePatience, redlatch.OutagePatience)

		// TryLock does not wait for servers.
		start = time.Now()
		_, err = c.TryLock(t.Context(), "job", nil)
		locktest.WantErr(t, err, redlatch.ErrNoQuorum)
		locktest.WantTook(t, start, 0, 0)
	})
}

// TestOneSlowRoundIsNoOutage has a node miss a time limit that is longer than
// OutagePatience, as that of a file is. A wait without a limit continues until
// three rounds in a row have failed.
func TestOneSlowRoundIsNoOutage(t *testing.T) {
	const limit = 5 * time.Second
	for slow := range time.Duration(4) {
		synctest.Test(t, func(t *testing.T) {
			links, c := locktest.New(t, 1, redlatch.Options{NodeTimeout: limit})
			links.Freeze()
			if slow < 3 {
				time.AfterFunc(slow*limit, links.Thaw)
			}
			start := time.Now()
			if _, err := c.Lock(t.Context(), "job", nil); errors.Is(err, redlatch.ErrNoQuorum) != (slow == 3) {
				t.Errorf("after %d rounds that failed: %v", slow, err)
			}
			locktest.WantTook(t, start, slow*limit, slow*limit+time.Second)
			links.Thaw()
		})
	}
}

// Two outages begin in the middle of a wait. One of them is too long for a
// caller that set no limit.
func TestOutageInTheMiddleOfAWaitIsAsOneAtItsBeginning(t *testing.T) {
	for _, wait := range []time.Duration{0, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			hosts := locktest.NewHosts(t, 2, 3, redlatch.Options{})
			locktest.MustLock(t, hosts[1].Client, "job", redlatch.LockOptions{})
			start := time.Now()
			var ended error
			over := make(chan struct{})
			go func() {
				defer close(over)
				_, ended = hosts[0].Lock(context.Background(), "job", &redlatch.LockOptions{Wait: wait})
			}()
			for range 3 {
				time.Sleep(10 * time.Second)
				outage(hosts[0].Links, redlatch.OutagePatience/2)
			}
			time.Sleep(10 * time.Second)
			outage(hosts[0].Links, 0)
			<-over
			locktest.WantErr(t, ended, redlatch.ErrNoQuorum)
			if wait == 0 {
				// The caller notices it when it next asks.
				locktest.WantTook(t, start, 40*time.Second+redlatch.OutagePatience, 41*time.Second+redlatch.OutagePatience)
			} else {
				locktest.WantTook(t, start, wait, wait)
			}
		})
	}
}

func TestErrorAtTheEndOfAWaitIsWhatKeptItLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := locktest.NewHosts(t, 2, 3, redlatch.Options{})
		locktest.MustLock(t, hosts[1].Client, "job", redlatch.LockOptions{})
		outage(hosts[0].Links, 5*time.Second)
		_, err := hosts[0].Lock(t.Context(), "job", &redlatch.LockOptions{Wait: 10 * time.Second})
		locktest.WantErr(t, err, redlatch.ErrHeld)
		if errors.Is(err, redlatch.ErrNoQuorum) {
			t.Errorf("the outage was over, and yet: %v", err)
		}
		time.AfterFunc(5*time.Second, func() { outage(hosts[0].Links, 0) })
		_, err = hosts[0].Lock(t.Context(), "job", &redlatch.LockOptions{Wait: 10 * time.Second})
		locktest.WantErr(t, err, redlatch.ErrNoQuorum)
		if errors.Is(err, redlatch.ErrHeld) {
			t.Errorf("in an outage nobody can know who holds the lock, and yet: %v", err)
		}
	})
}

// TestEachCallerInLineWaitsForServersByItsOwnBound has several callers in the
// local queue of one client, of which one asks for all. The outage begins while
// they wait. One more comes when it has begun.
func TestEachCallerInLineWaitsForServersByItsOwnBound(t *testing.T) {
	for _, front := range []time.Duration{time.Minute, 0} {
		synctest.Test(t, func(t *testing.T) {
			hosts := locktest.NewHosts(t, 2, 3, redlatch.Options{})
			locktest.MustLock(t, hosts[1].Client, "job", redlatch.LockOptions{})
			var all sync.WaitGroup
			waits := []time.Duration{front, 0, 5 * time.Second, 0, 20 * time.Second}
			begin := time.Now()
			for _, wait := range waits {
				all.Go(func() {
					_, err := hosts[0].Lock(context.Background(), "job", &redlatch.LockOptions{Wait: wait})
					locktest.WantErr(t, err, redlatch.ErrNoQuorum)
					if wait == 0 {
						locktest.WantTook(t, begin, 2*time.Second+redlatch.OutagePatience, 3500*time.Millisecond+redlatch.OutagePatience)
					} else {
						locktest.WantTook(t, begin, wait, wait+10*time.Millisecond)
					}
				})
				time.Sleep(time.Millisecond)
			}
			time.Sleep(2 * time.Second)
			outage(hosts[0].Links, 0)
			time.Sleep(time.Second) // the one that asks notices
			late := time.Now()
			_, err := hosts[0].Lock(t.Context(), "job", nil)
			locktest.WantErr(t, err, redlatch.ErrNoQuorum)
			locktest.WantTook(t, late, redlatch.OutagePatience, redlatch.OutagePatience)
			all.Wait()
		})
	}
}

// TestWaiterThatMissedARoundHasItsOldPlaceBack cuts the first waiter off from
// the nodes for a moment, as if its process were starved, while more waiters
// queue behind it.
func TestWaiterThatMissedARoundHasItsOldPlaceBack(t *testing.T) {
	for _, n := range []int{1, 3, 5} {
		synctest.Test(t, func(t *testing.T) {
			hosts := locktest.NewHosts(t, 6, n, redlatch.Options{})
			first := locktest.MustLock(t, hosts[5].Client, "job", redlatch.LockOptions{})
			served := queueUp(t, hosts[:5], time.Millisecond, func() {
				time.Sleep(time.Second)
				hosts[0].Links.Freeze()
				time.Sleep(900 * time.Millisecond)
				hosts[0].Links.Thaw()
				time.Sleep(600 * time.Millisecond)
				first.Release(t.Context())
			})
			if !slices.IsSorted(served) {
				t.Errorf("%d nodes: served in the order %v", n, served)
			}
		})
	}
}

// changing is a link to a node that a membership change bars until the change
// is over.
type changing struct {
	*locktest.Link
	over time.Time
}

func (c *changing) GuardsAlone() bool { return false }

func (c *changing) Do(ctx context.Context, req node.Request) (node.Reply, error) {
	reply, err := c.Link.Do(ctx, node.Request{Op: node.OpInspect, Name: "marker"})
	if err == nil && req.Guard != nil && time.Now().Before(c.over) {
		return node.Reply{Status: node.Misconfigured, Now: reply.Now, Marker: node.Marker{Guard: &node.Guard{Membership: node.BarredMembership, Nodes: "others"}}}, nil
	}
	return c.Link.Do(ctx, req)
}

func (c *changing) Mark(context.Context, node.MarkRequest) (node.MarkReply, error) {
	return node.MarkReply{}, errors.New("it is not read")
}

func TestLockWaitsForTheEndOfAMembershipChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		over := time.Now().Add(5 * time.Second)
		for i, l := range links {
			nodes[i] = &changing{l, over}
		}
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		_, err := c.TryLock(t.Context(), "job", nil)
		locktest.WantErr(t, err, redlatch.ErrConfig, redlatch.ErrChanging)
		start := time.Now()
		locktest.MustLock(t, c, "job", redlatch.LockOptions{Wait: time.Minute}).Release(t.Context())
		locktest.WantTook(t, start, 4900*time.Millisecond, 5200*time.Millisecond)

		for i := range nodes {
			nodes[i] = &changing{links[i], time.Now().Add(time.Hour)}
		}
		start = time.Now()
		_, err = locktest.NewClient(t, nodes, redlatch.Options{}).Lock(context.Background(), "job", &redlatch.LockOptions{Wait: 3 * time.Second})
		locktest.WantErr(t, err, redlatch.ErrChanging)
		locktest.WantTook(t, start, 3*time.Second, 3*time.Second)
	})
}
