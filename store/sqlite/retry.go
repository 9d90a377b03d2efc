package sqlite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	codes "modernc.org/sqlite/lib"
)

// Limits of the pause before a busy file is tried again. A transaction takes a
// fraction of a millisecond, so the first pauses are short.
const (
	leastPause = 50 * time.Microsecond
	mostPause  = 5 * time.Millisecond
)

// retry calls f again while the file is busy and the context has not ended.
// SQLite could wait by itself, but not for less than a millisecond.
func retry(ctx context.Context, f func() error) error {
	for pause := leastPause; ; pause = min(2*pause, mostPause) {
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
