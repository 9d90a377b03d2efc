package supervise

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// sharedClock is what uptime reads.
const sharedClock = unix.CLOCK_BOOTTIME

// groupLives reports whether a process group has a member that is not a
// zombie. In many containers process 1 does not reap, and zombies stay for ever.
//
// A process that forks and exits while the list is read may be missed, parent
// and child. So the group counts as dead only when two reads in a row find the
// same zombies and nobody else: a fork in between leaves one more zombie.
func groupLives(group int) bool {
	var before map[string]bool
	for range 10 {
		if syscall.Kill(-group, 0) == syscall.ESRCH {
			return false
		}
		dead, alive := membersOf(group)
		if alive {
			return true
		}
		if len(dead) > 0 && maps.Equal(dead, before) {
			return false
		}
		before = dead
	}
	return true
}

// membersOf returns the zombies of a group, and whether it has other members.
func membersOf(group int) (dead map[string]bool, alive bool) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return nil, true
	}
	dead = map[string]bool{}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// pid (name) state ppid pgrp …; the name may contain anything.
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		if len(fields) < 3 || string(fields[2]) != strconv.Itoa(group) {
			continue
		}
		if state := fields[0][0]; state != 'Z' && state != 'X' {
			return nil, true
		}
		dead[path] = true
	}
	return dead, false
}
