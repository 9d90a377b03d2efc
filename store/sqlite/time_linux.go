package sqlite

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// systemTime uses the boot clock, which cannot be set and continues while the
// machine is suspended.
func systemTime() timekeeper {
	k := timekeeper{wall: time.Now, elapsed: bootClock}
	if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil && bootClock() > 0 {
		k.boot = strings.TrimSpace(string(id))
	}
	return k
}

func bootClock() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return 0
	}
	return ts.Nano()
}
