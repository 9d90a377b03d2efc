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
