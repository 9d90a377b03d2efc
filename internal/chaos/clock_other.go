//go:build unix && !linux

package chaos

import "time"

// now returns nanoseconds on the wall clock, the only one that processes share
// here; a run is spoilt if somebody sets it meanwhile.
func now() int64 { return time.Now().UnixNano() }
