//go:build unix && !linux

package signals

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// DieBy ends this process by a signal, so that its parent sees which one. With
// group, the whole process group gets it. DieBy returns for QUIT: the Go runtime
// turns that into a stack trace, and without cgo this cannot be changed.
func DieBy(s syscall.Signal, group bool) {
	if s == syscall.SIGQUIT {
		return
	}
	signal.Reset(s)
	if group {
		syscall.Kill(0, s)
	}
	syscall.Kill(os.Getpid(), s)
	time.Sleep(time.Second) // the signal may be delivered after Kill returns
}
