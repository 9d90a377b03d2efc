package chaos

import "golang.org/x/sys/unix"

// now returns nanoseconds since the machine was started, suspensions included:
// a clock that all processes of the machine share and that cannot be set.
func now() int64 {
	var t unix.Timespec
	// It cannot fail with this clock.
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t)
	return t.Nano()
}
