// Package clock is a clock that all processes of this machine share, so that
// the moments at which one of them released a lock and another got it can be
// subtracted from each other.
package clock

import (
	"context"
	"os"
	"time"
)

// Until returns how long it is until the given moment of this clock.
func Until(moment int64) time.Duration { return time.Duration(moment - Now()) }

// Sleep sleeps until the given moment of this clock.
func Sleep(moment int64) { time.Sleep(Until(moment)) }

// Wait waits for a time, or until ctx ends.
func Wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// OfSelf returns the CPU time that this process has used.
func OfSelf() time.Duration { return OfProcess(os.Getpid()) }
