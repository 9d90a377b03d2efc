//go:build unix && !linux

package chaos

import "time"

// now returns nanoseconds on the wall clock, the only one that processes share
// here; a run is invalid if the clock is set during it.
func now() int64 { return time.Now().UnixNano() }
