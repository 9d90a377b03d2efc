package runner_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/internal/test/race"
	"github.com/redlatch/redlatch/node"
)

// queueUp has the hosts queue for the lock one after the other. It returns
// their numbers in the order in which they got it. Each holds it for hold.
func queueUp(t *testing.T, hosts []*locktest.Host, hold time.Duration, free func()) []string {
	t.Helper()
	l := &line{t: t}
	for i, h := range hosts {
		l.join(h.Client, fmt.Sprintf("%03d", i), hold, redlatch.LockOptions{})
		time.Sleep(2 * time.Millisecond)
	}
	free()
	l.all.Wait()
	return l.order()
}

func TestWaitersAreServedInTheOrderOfTheirArrival(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5} {
		locktest.Run(t, fmt.Sprint(n, " nodes"), func(t *testing.T) {
			hosts := locktest.NewHosts(t, 21, n, redlatch.Options{})
			for i, h := range hosts {
				for j, l := range h.Links {
					// Farther from some nodes than from others.
					l.Set(func(l *locktest.Link) { l.Out = time.Duration(1+(i+j)%5) * 100 * time.Microsecond })
				}
			}
			first := locktest.MustLock(t, hosts[20].Client, "job", redlatch.LockOptions{})
			served := queueUp(t, hosts[:20], time.Millisecond, func() { first.Release(t.Context()) })
			if !slices.IsSorted(served) || len(served) != 20 {
				t.Errorf("served in the order %v", served)
			}
		})
	}
}

func TestHandOverCostsTheSameInAnyCrowd(t *testing.T) {
	if race.Enabled { // with so many timers in a bubble the detector itself crashes
		again := exec.CommandContext(t.Context(), "go", "test", "-race=false", "-count=1", "-vet=off", "-run", "^"+t.Name()+"$")
		if out, err := again.CombinedOutput(); err != nil {
			t.Errorf("without the race detector: %v\n%s", err, out)
		}
		return
	}
	cost := func(t *testing.T, crowd int) (perHandOver float64) {
		synctest.Test(t, func(t *testing.T) {
			hosts := locktest.NewHosts(t, crowd+1, 5, redlatch.Options{})
			for _, h := range hosts { // if messages took no time, the scheduler would decide which comes first
				slowly(h.Links, 100*time.Microsecond)
			}
			first := locktest.MustLock(t, hosts[crowd].Client, "job", redlatch.LockOptions{})
			var before int
			queueUp(t, hosts[:crowd], time.Millisecond, func() {
				before = locktest.Requests(hosts...)
				first.Release(t.Context())
			})
			synctest.Wait()
			perHandOver = float64(locktest.Requests(hosts...)-before) / float64(crowd) / 5
		})
		return perHandOver
	}
	few, many := cost(t, 8), cost(t, 200)
	// One round takes the lock and one frees it. Waiters that renew their place
	// add a little.
	if few > 2.3 || many > 2.3 {
		t.Errorf("a hand-over costs %.2f and %.2f requests to each node, want 2", few, many)
	}
}

func TestWaiterAsksNothingUntilItsTurnButToKeepItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const held = 40 * time.Second
		hosts := locktest.NewHosts(t, 11, 3, redlatch.Options{})
		first := locktest.MustLock(t, hosts[10].Client, "job", redlatch.LockOptions{})
		synctest.Wait() // until it is held on every node: waiters leave one that lacks it to the holder
		queueUp(t, hosts[:10], 0, func() {
			time.Sleep(held)
			for rank := 1; rank <= 10; rank++ {
				asked := hosts[rank-1].Links[0].Count(node.OpAcquire)
				// Every 400 ms for the first two, and about once a second for
				// those behind, minus the jitter.
				every := 900 * time.Millisecond
				if rank <= 2 {
					every = 400 * time.Millisecond
				}
				most := 2 + int(held/(every*3/4))
				if least := int(held/every) * 3 / 4; asked > most || asked < least {
					t.Errorf("waiter of rank %d asked %d times in %v, want %d to %d", rank, asked, held, least, most)
				}
			}
			first.Release(t.Context())
		})
	})
}

// TestLongLineAsksLittleMoreThanAShortOne has so many waiters that they would
// send 440 requests a second if each asked as often as the first fifty.
func TestLongLineAsksLittleMoreThanAShortOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiters, seconds = 400, 20
		hosts := locktest.NewHosts(t, waiters+1, 1, redlatch.Options{})
		first := locktest.MustLock(t, hosts[waiters].Client, "job", redlatch.LockOptions{})
		queueUp(t, hosts[:waiters], 0, func() {
			time.Sleep(5 * time.Second)
			before := locktest.Requests(hosts...)
			time.Sleep(seconds * time.Second)
			rate := float64(locktest.Requests(hosts...)-before) / seconds
			if rate > 230 {
				t.Errorf("a line of %d asks a node %.0f times a second, want 230 at the most", waiters, rate)
			}
			first.Release(t.Context())
		})
	})
}

func TestCallerThatGivesUpPassesItsTurnOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := locktest.NewHosts(t, 3, 5, redlatch.Options{})
		first := locktest.MustLock(t, hosts[2].Client, "job", redlatch.LockOptions{})
		hosts[0].Links.Set(func(l *locktest.Link) { l.WakeLag = time.Minute }) // notified, but that does not arrive in time
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() {
			_, err := hosts[0].Lock(ctx, "job", nil)
			gone <- err
		}()
		time.Sleep(time.Millisecond)
		served := firstServed(t, hosts[1])
		first.Release(t.Context())
		synctest.Wait()
		cancel()
		start := time.Now()
		locktest.WantErr(t, <-gone, context.Canceled)
		wantServedWithin(t, served, start, 10*time.Millisecond)
	})
}

// frozenLine has the hosts queue. All freeze but the last. The channel reports
// when that one has the lock.
func frozenLine(t *testing.T, hosts []*locktest.Host) (served <-chan time.Time) {
	t.Helper()
	dead, alive := hosts[:len(hosts)-1], hosts[len(hosts)-1]
	for _, h := range dead {
		go h.Lock(t.Context(), "job", &redlatch.LockOptions{Wait: time.Minute})
		time.Sleep(2 * time.Millisecond)
	}
	served = firstServed(t, alive)
	time.Sleep(2 * time.Second) // until each asks as seldom as its place requires
	for _, h := range dead {
		h.Links.Freeze()
	}
	return served
}

func TestFrozenWaitersHoldUpNobodyHoweverManyTheyAre(t *testing.T) {
	for _, n := range []int{1, 3} {
		for _, frozen := range []int{1, 5, 50, 100} {
			for _, held := range []time.Duration{0, 10 * time.Millisecond, 700 * time.Millisecond, 3 * time.Second} {
				if frozen > 50 && (n > 1 || held > 0) {
					continue // it takes long
				}
				locktest.Run(t, fmt.Sprintf("%d nodes, %d frozen, held for %v more", n, frozen, held), func(t *testing.T) {
					hosts := locktest.NewHosts(t, frozen+2, n, redlatch.Options{})
					first := locktest.MustLock(t, hosts[frozen+1].Client, "job", redlatch.LockOptions{})
					served := frozenLine(t, hosts[:frozen+1])
					time.Sleep(held)
					first.Release(t.Context())
					start := time.Now()
					if late := (<-served).Sub(start); late > 1700*time.Millisecond && (frozen <= 64 || late > 4600*time.Millisecond) {
						t.Errorf("%d frozen waiters held up the next for %v", frozen, late)
					}
				})
			}
		}
	}
}

// TestFrozenWaitersKeepOutNobodyWhoFitsBesideTheHolders has readers, or slots,
// that hold the lock all the time, and frozen writers that wait. Their places are
// all that keeps out those behind them.
func TestFrozenWaitersKeepOutNobodyWhoFitsBesideTheHolders(t *testing.T) {
	for _, share := range []redlatch.LockOptions{reader, {Slots: 30}} {
		for _, n := range []int{1, 3} {
			for _, frozen := range []int{1, 5, 50, 100} {
				for _, living := range []int{1, 10} {
					if living > 1 && share.Slots > 0 || frozen > 50 && n+living > 2 {
						continue // several may get their slots crosswise, and try again; and hundreds take long
					}
					locktest.Run(t, fmt.Sprintf("%d slots, %d nodes, %d frozen, %d behind them", share.Slots, n, frozen, living), func(t *testing.T) {
						hosts := locktest.NewHosts(t, frozen+living+1, n, redlatch.Options{})
						locktest.MustLock(t, hosts[frozen+living].Client, "job", share)
						for _, h := range hosts[:frozen] {
							go h.Lock(t.Context(), "job", &redlatch.LockOptions{Wait: time.Minute})
							time.Sleep(2 * time.Millisecond)
						}
						var served sync.WaitGroup
						for _, h := range hosts[frozen : frozen+living] {
							served.Go(func() { locktest.MustLock(t, h.Client, "job", share) })
						}
						time.Sleep(2 * time.Second) // until each asks as seldom as its place requires
						for _, h := range hosts[:frozen] {
							h.Links.Freeze()
						}
						start := time.Now()
						served.Wait()
						if late := time.Since(start); late > 2550*time.Millisecond && (frozen <= 64 || late > 5500*time.Millisecond) {
							t.Errorf("%d frozen writers kept out %d others for %v", frozen, living, late)
						}
					})
				}
			}
		}
	}
}

func TestFrozenHolderAndFrozenWaitersAreOutlivedByTheTTLAndASecond(t *testing.T) {
	const ttl = 3 * time.Second
	for _, frozen := range []int{1, 5, 20, 50} {
		locktest.Run(t, fmt.Sprint(frozen, " frozen"), func(t *testing.T) {
			hosts := locktest.NewHosts(t, frozen+2, 3, redlatch.Options{})
			first := locktest.MustLock(t, hosts[frozen+1].Client, "job", redlatch.LockOptions{TTL: ttl})
			served := frozenLine(t, hosts[:frozen+1])
			hosts[frozen+1].Links.Freeze()
			start := first.Deadline()
			if late := (<-served).Sub(start); late < 0 || late > 1700*time.Millisecond {
				t.Errorf("a frozen holder and %d frozen waiters held up the next for %v after its deadline", frozen, late)
			}
		})
	}
}

func TestPlainHolderIsWaitedForByAskingNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := locktest.NewHosts(t, 3, 3, redlatch.Options{})
		hosts[2].Links.Take(t, "job", "plain", time.Minute)
		var freed time.Time
		queueUp(t, hosts[:2], 0, func() {
			time.Sleep(10 * time.Second)
			for _, h := range hosts { // as a foreign client would: nobody is notified
				h.Links.Set(func(l *locktest.Link) { l.LoseWakes = true })
			}
			for _, l := range hosts[2].Links {
				locktest.Release(t, l, "job")
			}
			freed = time.Now()
			if asked := hosts[1].Links[0].Count(node.OpAcquire); asked > 30 {
				t.Errorf("the second in line asked %d times in 10 s, though only the first need", asked)
			}
		})
		locktest.WantTook(t, freed, 0, time.Second)
	})
}

func TestFreeLockIsKeptForItsWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := locktest.NewHosts(t, 3, 3, redlatch.Options{})
		first := locktest.MustLock(t, hosts[2].Client, "job", redlatch.LockOptions{})
		hosts[0].Links.Set(func(l *locktest.Link) { l.WakeLag = 50 * time.Millisecond })
		served := firstServed(t, hosts[0])
		first.Release(t.Context())
		start := time.Now()
		if _, err := hosts[1].TryLock(t.Context(), "job", nil); !errors.Is(err, redlatch.ErrHeld) {
			t.Errorf("a free lock that another waits for was acquired: %v", err)
		}
		wantServedWithin(t, served, start, 100*time.Millisecond)
	})
}
