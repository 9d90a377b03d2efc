//go:build unix

package main

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// signalName is the name of a signal: SIGTERM.
func signalName(s syscall.Signal) string { return unix.SignalName(s) }

// session is the session that we are in.
func session() int {
	id, _ := unix.Getsid(0)
	return id
}

// terminateSignal asks a process to end.
const terminateSignal = syscall.SIGTERM
