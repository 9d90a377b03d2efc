package sqlite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redlatch/redlatch/node"
	codes "modernc.org/sqlite/lib"
)

// Limits of the pause before a busy file is tried again. A transaction takes a
// fraction of a millisecond, so the first pauses are short. Who tries more often
// gets the file sooner. So a holder goes before the waiters: in a crowd of
// hundreds its release would otherwise wait for seconds, and all with it.
const (
	leastPause  = 50 * time.Microsecond
	holderPause = 500 * time.Microsecond
	mostPause   = 5 * time.Millisecond
	waiterPause = 40 * time.Millisecond
)

// pauseFor returns the longest pause of a request.
func pauseFor(req node.Request) time.Duration {
	switch {
	case req.Op == node.OpRelease || req.Op == node.OpExtend || req.Op == node.OpRepair:
		return holderPause
	case req.Wait:
		return waiterPause
	}
	return mostPause
}

// retry calls f again while the file is busy and the context has not ended.
// SQLite could wait by itself, but not for less than a millisecond.
func retry(ctx context.Context, most time.Duration, f func() error) error {
	for pause := leastPause; ; pause = min(2*pause, most) {
		err := f()
		if code(err) != codes.SQLITE_BUSY {
			return err
		}
		timer := time.NewTimer(pause/2 + rand.N(pause))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w: %w", err, ctx.Err())
		}
	}
}
