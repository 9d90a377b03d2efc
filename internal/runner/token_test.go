package runner_test

import (
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/store/memory"
)

// offClock is a wall clock that is wrong by a fixed amount.
type offClock struct {
	start time.Time
	by    time.Duration
}

func (c offClock) Now() time.Time        { return time.Now().Add(c.by) }
func (c offClock) Uptime() time.Duration { return time.Since(c.start) }

func TestTokensGrowThoughClientClocksAreWrong(t *testing.T) {
	for _, n := range []int{1, 5} {
		synctest.Test(t, func(t *testing.T) {
			_, nodes := locktest.NewLinks(t, n)
			var clients []*redlatch.Client
			for _, off := range []time.Duration{0, time.Hour, -time.Hour, 37 * time.Minute, -11 * time.Second, 11 * time.Second} {
				clients = append(clients, locktest.NewClient(t, nodes, locktest.WithClock(redlatch.Options{}, offClock{time.Now(), off})))
			}
			takeTurns(t, clients, 20)
		})
	}
}

// takeTurns has clients lock one name so many times each. Tokens must grow.
func takeTurns(t *testing.T, clients []*redlatch.Client, times int) {
	t.Helper()
	var h locktest.History
	var all sync.WaitGroup
	for _, c := range clients {
		all.Go(func() {
			for range times {
				h.Hold(t, c, "job", redlatch.LockOptions{}, time.Nanosecond)
				time.Sleep(time.Millisecond)
			}
		})
	}
	all.Wait()
	if leases, _ := h.Judge(t); leases != times*len(clients) {
		t.Errorf("they had %d leases, want %d each", leases, times)
	}
}

func TestANodeWithAWrongClockIsNamedAndLocksNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, off := range []time.Duration{time.Hour, -time.Hour} {
			var log strings.Builder
			nodes := memory.Nodes(4)
			nodes = append(nodes, memory.New(&memory.Options{Name: "wrong", Clock: func() time.Time { return time.Now().Add(off) }}))
			ahead := locktest.NewClient(t, nodes, locktest.WithClock(redlatch.Options{}, offClock{time.Now(), off}))
			right := locktest.NewClient(t, nodes, redlatch.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			var last redlatch.Token
			for range 10 {
				for _, c := range []*redlatch.Client{ahead, right} {
					l, err := c.TryLock(t.Context(), "job", nil)
					must(t, err)
					if l.Token() <= last {
						exclusion.Never(t, "token %d after %d", l.Token(), last)
					}
					last = l.Token()
					if off := time.Until(time.UnixMicro(int64(last))).Abs(); off > time.Minute {
						t.Fatalf("token %d is %v away from the time of four nodes of five", last, off)
					}
					must(t, l.Release(t.Context()))
					synctest.Wait()
					time.Sleep(time.Millisecond)
				}
			}
			if text := log.String(); !strings.Contains(text, "clock") || !strings.Contains(text, "node=memory:wrong") || strings.Count(text, "node=") != 1 {
				t.Errorf("the wrong node is not named, once and alone: %s", text)
			}
		}
	})
}

func TestClocksThatWereSetBackDoNotLockAnyoneOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var back time.Duration
		clock := func() time.Time { return time.Now().Add(-back) }
		var nodes []redlatch.Node
		for i := range 3 {
			nodes = append(nodes, memory.New(&memory.Options{Name: strconv.Itoa(i), Clock: clock}))
		}
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{})
		first := l.Token()
		l.Release(t.Context())
		synctest.Wait()
		back = 30 * time.Minute
		d := locktest.NewClient(t, nodes, redlatch.Options{})
		l, err := d.TryLock(t.Context(), "job", nil)
		must(t, err)
		if l.Token() <= first {
			exclusion.Never(t, "token %d after %d", l.Token(), first)
		}
	})
}

// TestTokensGoBackWhereNodesForgetAfterClocksWereSetBack shows what an assumption is
// needed for: the clocks of all nodes are set back, and two of three lose their data
// before the clocks have caught up.
func TestTokensGoBackWhereNodesForgetAfterClocksWereSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, nodes := locktest.NewGuarded(3)
		c := locktest.NewClient(t, nodes, redlatch.Options{AssumeFresh: true})
		token := func() redlatch.Token {
			l := locktest.MustLock(t, c, "job", redlatch.LockOptions{})
			must(t, l.Release(t.Context()))
			synctest.Wait()
			return l.Token()
		}
		first := token()
		for _, g := range all {
			g.SetBack(time.Hour)
		}
		second := token()
		all[0].Empty()
		token() // it is marked
		time.Sleep(time.Minute)
		all[2].SetDown(true)
		if _, err := c.TryLock(t.Context(), "job", nil); err == nil {
			t.Error("a node that has lost its fence and one that has not accept a token in common")
		}
		all[2].SetDown(false)
		third := token()
		all[1].Empty()
		token()
		time.Sleep(time.Minute)
		fourth := token()
		if second <= first || third <= second || (time.Duration(third-fourth)*time.Microsecond).Round(time.Hour) != time.Hour {
			t.Errorf("the tokens are %d, %d, %d and %d", first, second, third, fourth)
		}
	})
}
