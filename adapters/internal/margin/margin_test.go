package margin_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch/adapters/internal/margin"
)

func TestWorkEndsBeforeItsLeaseUnlessItIsExtended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var deadline atomic.Int64 // after begin
		deadline.Store(int64(10 * time.Second))
		left := func() time.Duration { return time.Duration(deadline.Load()) - time.Since(begin) }
		ctx, stop := margin.Context(t.Context(), left, 3*time.Second)
		defer stop()
		time.Sleep(6 * time.Second)
		deadline.Add(int64(5 * time.Second))
		<-ctx.Done()
		if after := time.Since(begin); after != 12*time.Second || !errors.Is(context.Cause(ctx), margin.ErrEarly) {
			t.Errorf("the work ended after %v, because of %v; want 12s and ErrEarly", after, context.Cause(ctx))
		}
	})
}

func TestStopIsNoLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := margin.Context(t.Context(), func() time.Duration { return time.Hour }, time.Second)
		stop()
		synctest.Wait()
		if errors.Is(context.Cause(ctx), margin.ErrEarly) || ctx.Err() == nil {
			t.Errorf("the context ended with %v", context.Cause(ctx))
		}
	})
}
