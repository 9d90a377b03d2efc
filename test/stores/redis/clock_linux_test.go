package redis_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/written"
)

// offClock is a wall clock that is wrong by a fixed amount.
type offClock struct {
	start time.Time
	by    time.Duration
}

func (c offClock) Now() time.Time        { return time.Now().Add(c.by) }
func (c offClock) Uptime() time.Duration { return time.Since(c.start) }

// TestTokensGrowThoughClocksAreAnHourWrong has contenders whose clocks are up
// to an hour wrong in either direction, and one real server whose clock is.
func TestTokensGrowThoughClocksAreAnHourWrong(t *testing.T) {
	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(fmt.Sprint(off), func(t *testing.T) {
			servers := append(servertest.Redis(t, 4), servertest.StartWithClock(t, off))
			if text := servers[4].Do("TIME"); time.Until(unix(t, text)).Round(time.Minute) != off {
				t.Fatalf("the fifth server's clock says %s, which is not %v off", text, off)
			}
			addresses := servertest.Addresses(servers)
			log := &written.Text{}
			var mu sync.Mutex
			var last redlatch.Token
			var all sync.WaitGroup
			for _, wrong := range []time.Duration{0, time.Hour, -time.Hour, 31 * time.Minute, -11 * time.Second} {
				opts := redlatch.Options{Logger: slog.New(slog.NewTextHandler(log, nil)), NodeTimeout: 2 * time.Second, RetryDelay: 20 * time.Millisecond}
				c := newClient(t, open(t, addresses...), locktest.WithClock(opts, offClock{time.Now(), wrong}))
				all.Go(func() {
					for range 10 {
						l, err := c.Lock(context.Background(), "job", &redlatch.LockOptions{Wait: time.Minute})
						if err != nil {
							t.Errorf("clock off by %v: %v", wrong, err)
							return
						}
						mu.Lock()
						if l.Token() <= last {
							exclusion.Never(t, "clock off by %v: token %d after %d", wrong, l.Token(), last)
						}
						last = l.Token()
						mu.Unlock()
						if err := l.Release(context.Background()); err != nil {
							t.Errorf("clock off by %v: %v", wrong, err)
						}
					}
				})
			}
			all.Wait()
			if away := time.Until(time.UnixMicro(int64(last))).Abs(); away > time.Minute {
				t.Errorf("the last token is %v away from the time of four servers of five", away)
			}
			if text := log.String(); !strings.Contains(text, "clock differs from the majority") || !strings.Contains(text, servers[4].Addr()) {
				t.Errorf("the wrong server is not named: %s", text)
			}
		})
	}
}

// unix reads the reply of TIME.
func unix(t testing.TB, text string) time.Time {
	t.Helper()
	var sec, usec int64
	if _, err := fmt.Sscan(text, &sec, &usec); err != nil {
		t.Fatal(err)
	}
	return time.Unix(sec, usec*1000)
}

func TestExaminationFindsClocksThatAreApart(t *testing.T) {
	t.Parallel()
	servers := append(servertest.Redis(t, 2), servertest.StartWithClock(t, -3*time.Second), servertest.StartWithClock(t, time.Hour))
	found, up := examine(t, nodesOf(drivers["rueidis"](servertest.Addresses(servers)...)), redlatch.Options{Guard: redlatch.GuardOff}, "")
	if !slices.Contains(found, "danger clock") || !slices.Contains(found, "warning clock") {
		t.Errorf("found is %q", found)
	}
	if off := up.Nodes[3].Clock - time.Hour; off.Abs() > time.Second {
		t.Errorf("a clock that is an hour ahead is said to be %v ahead", up.Nodes[3].Clock)
	}
}
