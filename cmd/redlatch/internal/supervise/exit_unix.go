//go:build unix

package supervise

import (
	"os"
	"syscall"

	"github.com/redlatch/redlatch/cmd/internal/signals"
)

// ExitOf returns how a process ended.
func ExitOf(state *os.ProcessState) Exit {
	if w, ok := state.Sys().(syscall.WaitStatus); ok {
		return exitOf(w)
	}
	return Exit{Code: state.ExitCode()}
}

func exitOf(w syscall.WaitStatus) Exit {
	switch s := w.Signal(); {
	case !w.Signaled():
		return Exit{Code: w.ExitStatus()}
	case signals.Ends(s):
		return Exit{CodeSignal + int(s), s}
	default:
		return Exit{Code: CodeSignal + int(s)}
	}
}
