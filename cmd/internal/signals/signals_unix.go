//go:build unix

package signals

import (
	"os"
	"slices"
	"syscall"
)

// Ends reports whether a signal is meant to end a process.
func Ends(s os.Signal) bool {
	return slices.Contains([]os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}, s)
}
