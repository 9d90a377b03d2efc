//go:build !linux

package runner

import "time"

// suspendedTime returns how far the wall clock has moved ahead of the monotonic
// clock since start. A wall clock that is set forward looks like a suspension
// too: leases then end early, which is safe.
func suspendedTime(start time.Time) time.Duration {
	now := time.Now()
	wall := now.Round(0).Sub(start.Round(0))
	return max(wall-now.Sub(start), 0)
}
