//go:build unix

package signals

import (
	"os"
	"syscall"
)

// Ends reports whether a signal is meant to end a process.
func Ends(s os.Signal) bool {
	switch s {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
		return true
	}
	return false
}
