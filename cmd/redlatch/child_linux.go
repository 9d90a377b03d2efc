package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// sharedClock is what uptime reads.
const sharedClock = unix.CLOCK_BOOTTIME

// endWithParent has the kernel kill CMD if we are killed ourselves, where there
// is no guardian to do better. It reaches CMD alone, not the rest of its group.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// groupLives reports whether a process group has a member that is not a
// zombie: where process 1 does not reap, in many a container, the dead would
// count for ever.
func groupLives(group int) bool {
	if syscall.Kill(-group, 0) != nil {
		return false
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return true
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		// pid (name) state ppid pgrp …; the name may hold anything.
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		if len(fields) < 3 || string(fields[2]) != strconv.Itoa(group) {
			continue
		}
		if state := fields[0][0]; state != 'Z' && state != 'X' {
			return true
		}
	}
	return false
}
