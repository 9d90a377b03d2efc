package sqlite

import (
	"os"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

const clockBoottime = 7

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
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		return 0
	}
	return ts.Nano()
}
