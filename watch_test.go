package redlatch_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locktest"
)

func TestWatchReportsWhoLeadsAndEveryChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := locktest.NewHosts(t, 3, 3, redlatch.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var got []*redlatch.Holder
		var errs []error
		var wg sync.WaitGroup
		wg.Go(func() {
			for h, err := range hosts[2].Client.Watch(ctx, "leader") {
				mu.Lock()
				got, errs = append(got, h), append(errs, err)
				mu.Unlock()
			}
		})
		var want []redlatch.Token
		for i := range 3 {
			want = append(want, 0)
			time.Sleep(time.Second)
			l := locktest.MustLock(t, hosts[i%2].Client, "leader", redlatch.LockOptions{})
			want = append(want, l.Token())
			time.Sleep(time.Minute)
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Second)
		}
		want = append(want, 0)
		cancel()
		wg.Wait()
		var tokens []redlatch.Token
		for i, h := range got {
			var token redlatch.Token
			if h != nil {
				token = h.Token
			}
			tokens = append(tokens, token)
			if errs[i] != nil || h != nil && (h.Token == 0 || h.Owner == "" || h.Since.IsZero()) {
				t.Errorf("report %d is %+v, %v", i, h, errs[i])
			}
		}
		if !slices.Equal(tokens, want) {
			t.Errorf("it reported %d, want %d", tokens, want)
		}
	})
}

// TestWatchReportsReadersThatCameInADifferentOrderOnEachNode has five readers,
// each of which is the first on one of five nodes. So no quorum of nodes names
// the same one first.
func TestWatchReportsReadersThatCameInADifferentOrderOnEachNode(t *testing.T) {
	for what, opts := range map[string]redlatch.LockOptions{"readers": {Shared: true}, "slots": {Slots: 5}} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const n = 5
				hosts := locktest.NewHosts(t, n, n, redlatch.Options{})
				var wg sync.WaitGroup
				for h, host := range hosts {
					for i, l := range host.Links {
						l.Set(func(l *locktest.Link) { l.Out = time.Duration((i-h+n)%n) * time.Millisecond })
					}
					wg.Go(func() { locktest.MustLock(t, host.Client, "job", opts) })
				}
				wg.Wait()
				time.Sleep(time.Second)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				for h, err := range hosts[0].Watch(ctx, "job") {
					if err != nil || h == nil || h.Holders != n || h.Shared != opts.Shared || h.Slots != opts.Slots {
						t.Errorf("it reports %+v, %v; want one of %d holders", h, err, n)
					}
					return
				}
				t.Error("it reports nothing")
			})
		})
	}
}

func TestWatchReportsAnOutageOnceAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		l := locktest.MustLock(t, c, "leader", redlatch.LockOptions{TTL: 20 * time.Second})
		synctest.Wait() // until every node has the lock
		n := 0
		for h, err := range c.Watch(t.Context(), "leader") {
			n++
			switch n {
			case 1, 3:
				if err != nil || h == nil || h.Token != l.Token() {
					t.Errorf("report %d is %+v, %v", n, h, err)
				}
			case 2:
				if !errors.Is(err, redlatch.ErrNoQuorum) || h == nil || h.Token != l.Token() {
					t.Errorf("report %d is %+v, %v; want the last holder and ErrNoQuorum", n, h, err)
				}
				time.AfterFunc(2*time.Second, func() {
					links[0].Set(func(l *locktest.Link) { l.Refuse = nil })
				})
			}
			if n == 1 {
				links[0].Cut()
				links[1].Cut()
			}
			if n == 3 {
				break
			}
		}
		for _, err := range c.Watch(t.Context(), "") {
			locktest.WantErr(t, err, redlatch.ErrConfig)
		}
	})
}

func TestContendedIsClosedWhenSomebodyWaits(t *testing.T) {
	for _, n := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			hosts := locktest.NewHosts(t, 2, n, redlatch.Options{})
			l := locktest.MustLock(t, hosts[0].Client, "job", redlatch.LockOptions{})
			contended := l.Contended()
			if l.Contended() != contended {
				t.Error("the second call returns another channel")
			}
			time.Sleep(10 * time.Second)
			select {
			case <-contended:
				t.Error("it is closed although nobody waits")
			default:
			}
			var wg sync.WaitGroup
			wg.Go(func() {
				next := locktest.MustLock(t, hosts[1].Client, "job", redlatch.LockOptions{})
				idle := next.Contended()
				time.Sleep(time.Second)
				if err := next.Release(t.Context()); err != nil {
					t.Error(err)
				}
				select {
				case <-idle:
					t.Error("it is closed although nobody waited")
				default:
				}
			})
			began := time.Now()
			<-contended
			if took := time.Since(began); took > time.Second {
				t.Errorf("it took %v to notice", took)
			}
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
			wg.Wait()
		})
	}
}

// TestContendedDoesNotCountTheHoldersOwnPlace has a holder whose place in a queue a node
// still has, since its request did not arrive there.
func TestContendedDoesNotCountTheHoldersOwnPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := locktest.NewHosts(t, 2, 3, redlatch.Options{})
		first := locktest.MustLock(t, hosts[0].Client, "job", redlatch.LockOptions{})
		synctest.Wait() // the lock is on all nodes
		acquired := make(chan *redlatch.Lease, 1)
		go func() { acquired <- locktest.MustLock(t, hosts[1].Client, "job", redlatch.LockOptions{}) }()
		time.Sleep(time.Second)
		late := hosts[1].Links[2]
		late.Cut()
		if err := first.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		next := <-acquired
		synctest.Wait() // the release is on all nodes
		late.Set(func(l *locktest.Link) { l.Refuse = nil })
		look, err := late.Look(t.Context(), "job")
		if err != nil || look.Waiting != 1 {
			t.Fatalf("%d wait on the node that was cut off, %v; want 1", look.Waiting, err)
		}
		contended := next.Contended()
		time.Sleep(2 * time.Second)
		select {
		case <-contended:
			t.Error("it is closed although nobody else waits")
		default:
		}
	})
}

func TestWatchBelievesAQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		links[0].Take(t, "leader", "stray", time.Minute)
		l := locktest.MustLock(t, c, "leader", redlatch.LockOptions{})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		n := 0
		for h, err := range c.Watch(ctx, "leader") {
			n++
			if err != nil || h == nil || h.Token != l.Token() {
				t.Errorf("it reports %+v, %v", h, err)
			}
			// One node that says otherwise, and one that has lost it.
			links[1].Drop("leader")
			links[2].Drop("leader")
			links[1].Take(t, "leader", "stray", time.Minute)
			links[2].Take(t, "leader", "another", time.Minute)
			if n > 1 {
				break
			}
			links[1].Drop("leader")
		}
		if n != 1 {
			t.Errorf("it reported %d times", n)
		}
	})
}
