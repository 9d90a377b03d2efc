package early_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch/internal/early"
)

func TestWorkEndsBeforeItsLeaseUnlessItIsExtended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		deadline := begin.Add(10 * time.Second)
		ctx, stop := early.Context(t.Context(), func() time.Duration { return time.Until(deadline) }, 3*time.Second)
		defer stop()
		time.Sleep(6 * time.Second)
		deadline = deadline.Add(5 * time.Second)
		<-ctx.Done()
		if after := time.Since(begin); after != 12*time.Second || !errors.Is(context.Cause(ctx), early.ErrEarly) {
			t.Errorf("the work ended after %v, because of %v; want 12s and ErrEarly", after, context.Cause(ctx))
		}
	})
}

func TestStopIsNoLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := early.Context(t.Context(), func() time.Duration { return time.Hour }, time.Second)
		stop()
		synctest.Wait()
		if errors.Is(context.Cause(ctx), early.ErrEarly) || ctx.Err() == nil {
			t.Errorf("the context ended with %v", context.Cause(ctx))
		}
	})
}
