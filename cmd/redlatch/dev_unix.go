//go:build unix

package main

import (
	"os"
	"syscall"
)

const terminateSignal = syscall.SIGTERM

// codeOf is the exit code of a process as a shell would say it.
func codeOf(state *os.ProcessState) int {
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return exitSignal + int(w.Signal())
	}
	return state.ExitCode()
}

// signalOf is the signal that ended a process, if it is one that is meant to; 0
// otherwise.
func signalOf(state *os.ProcessState) syscall.Signal {
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() && ends(w.Signal()) {
		return w.Signal()
	}
	return 0
}
