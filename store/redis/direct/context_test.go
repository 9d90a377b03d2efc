package direct_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/store/redis/direct"
)

// TestCallerThatReadsNoticesItsContext freezes the server before each call. The caller
// returns long before the time limit of the node.
func TestCallerThatReadsNoticesItsContext(t *testing.T) {
	s := servertest.Redis(t, 1)[0]
	n, err := direct.Open(s.URL(), nil)
	check.Must(t, err)
	c, err := redlatch.New([]redlatch.Node{n}, &redlatch.Options{AssumeFresh: true, NodeTimeout: 5 * time.Second})
	check.Must(t, err)
	t.Cleanup(func() { c.Close() })
	for _, after := range []time.Duration{20 * time.Millisecond, 200 * time.Microsecond} {
		for range 100 { // callers that are alone read their replies
			l, err := c.Lock(t.Context(), "job", nil)
			check.Must(t, err)
			check.Must(t, l.Release(t.Context()))
		}
		held, err := c.Lock(t.Context(), "held", nil)
		check.Must(t, err)
		s.Freeze()
		for what, call := range map[string]func(context.Context) error{
			"Lock":    func(ctx context.Context) error { _, err := c.Lock(ctx, "job", nil); return err },
			"Release": held.Release,
		} {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(after, cancel)
			start := time.Now()
			if err := call(ctx); !errors.Is(err, context.Canceled) || time.Since(start) > 3*time.Second {
				t.Errorf("%s, cancelled after %v, returned after %v: %v", what, after, time.Since(start), err)
			}
		}
		s.Thaw()
		held.Release(context.Background()) // it may be done already
	}
}
