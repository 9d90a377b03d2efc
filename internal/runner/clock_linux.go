package runner

import (
	"syscall"
	"time"
	"unsafe"
)

const (
	clockMonotonic = 1
	clockBoottime  = 7
)

// suspendedTime returns how long the machine has been suspended since it
// booted: the difference between the boot clock and the monotonic clock. The
// boot clock is read first, so that a delay between the readings makes the
// result too small and never too large.
func suspendedTime(time.Time) time.Duration {
	boot, ok1 := readClock(clockBoottime)
	mono, ok2 := readClock(clockMonotonic)
	if !ok1 || !ok2 || boot < mono {
		return 0
	}
	return boot - mono
}

func readClock(id uintptr) (time.Duration, bool) {
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano()), errno == 0
}
