//go:build unix && !linux

package supervise

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// sharedClock is what uptime reads.
const sharedClock = unix.CLOCK_MONOTONIC

// groupLives reports whether a process group has a member.
func groupLives(group int) bool { return syscall.Kill(-group, 0) == nil }
