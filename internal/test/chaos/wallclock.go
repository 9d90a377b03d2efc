//go:build unix

package chaos

import (
	"sync/atomic"
	"time"
)

// wallClock is the clock of a client whose wall clock is wrong: by an offset
// that can be set while it runs. Leases are measured on the clock that all
// processes share.
type wallClock struct{ off atomic.Int64 }

func (c *wallClock) Now() time.Time { return time.Now().Add(time.Duration(c.off.Load())) }

func (c *wallClock) Uptime() time.Duration { return time.Duration(now()) }
