//go:build unix

package redis_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// TestFencesOfNamesUsedOnceAreGoneAfterTheirRetention takes 20,000 names, or
// as many as REDLATCH_NAMES says: make fences takes a million.
func TestFencesOfNamesUsedOnceAreGoneAfterTheirRetention(t *testing.T) {
	t.Parallel()
	names := 4_000
	if text := os.Getenv("REDLATCH_NAMES"); text != "" {
		var err error
		if names, err = strconv.Atoi(text); err != nil || names < 1 {
			t.Fatalf("REDLATCH_NAMES is %q: it must be a number above 0", text)
		}
	}
	server := servertest.Redis(t, 1)[0]
	c := newClient(t, open(t, server.URL()), redlatch.Options{
		Guard: redlatch.GuardOn, Cluster: redlatch.Cluster{MaxTTL: 5 * time.Second}, FenceRetention: 5 * time.Second,
	})
	var next, most atomic.Int64
	var all sync.WaitGroup
	start := time.Now()
	for range 64 {
		all.Go(func() {
			for {
				i := next.Add(1)
				if i > int64(names) || t.Failed() {
					return
				}
				l, err := c.Lock(context.Background(), fmt.Sprint("used once ", i), &redlatch.LockOptions{NoKeepAlive: true})
				if err == nil {
					err = l.Release(context.Background())
				}
				if err != nil {
					t.Error(err)
					return
				}
				if i%500 == 0 {
					n, _ := strconv.ParseInt(server.Do("DBSIZE"), 10, 64)
					most.Store(max(most.Load(), n))
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d names in %v, %d keys at the most", names, time.Since(start).Round(time.Millisecond), most.Load())
	if most.Load() < 1000 {
		t.Errorf("never more than %d keys: there were no fences to forget", most.Load())
	}
	eventually(t, 2*time.Minute, func() error {
		if n := server.Do("DBSIZE"); n != "1" { // the marker stays
			return fmt.Errorf("%s keys are left", n)
		}
		return nil
	})
}
