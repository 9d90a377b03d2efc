package redis_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// TestHandleCountsTimeOnTheServersClock detaches a lease on a machine whose clock
// is right, and attaches it where it is 40 s off, on a server whose clock is off
// too.
func TestHandleCountsTimeOnTheServersClock(t *testing.T) {
	const keep = 6 * time.Second
	server := servertest.StartWithClock(t, -20*time.Second)
	for _, off := range []time.Duration{-40 * time.Second, 40 * time.Second} {
		t.Run(fmt.Sprint(off), func(t *testing.T) {
			t.Parallel()
			name := fmt.Sprint("job", off)
			a := newClient(t, open(t, server.URL()), redlatch.Options{})
			b := newClient(t, open(t, server.URL()), locktest.WithClock(redlatch.Options{}, offClock{time.Now(), off}))
			began := time.Now()
			l, err := a.Lock(context.Background(), name, &redlatch.LockOptions{Keep: keep, MaxHold: time.Minute})
			must(t, err)
			acquired := time.Now()
			text, err := l.Detach()
			must(t, err)
			l, err = b.Attach(context.Background(), text)
			must(t, err)
			must(t, l.Release(context.Background()))
			released := time.Now()
			if _, err := a.Lock(context.Background(), name, nil); err != nil {
				t.Fatal(err)
			}
			// At the end of Keep, and not after the TTL of 10 s.
			if taken := time.Since(began); taken < keep-200*time.Millisecond {
				t.Errorf("the name was free after %v, and Keep is %v", taken, keep)
			}
			if late := time.Since(acquired) - keep; released.Sub(began) < time.Second && over(t, late, 2*time.Second, began) {
				t.Errorf("the name was free %v after the end of Keep", late)
			}
		})
	}
}
