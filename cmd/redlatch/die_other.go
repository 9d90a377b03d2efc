//go:build unix && !linux

package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// dieBy has this process die by a signal, and with keyed all of its process
// group. It returns for QUIT: of that the Go runtime makes a stack trace, and
// there is no way around it without cgo.
func dieBy(s syscall.Signal, keyed bool) {
	if s == syscall.SIGQUIT {
		return
	}
	signal.Reset(s)
	if keyed {
		syscall.Kill(0, s)
	}
	syscall.Kill(os.Getpid(), s)
	time.Sleep(time.Second) // the signal may come a moment after Kill returns
}
