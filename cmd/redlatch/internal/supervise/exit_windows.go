package supervise

import "os"

// ExitOf returns how a process ended.
func ExitOf(state *os.ProcessState) Exit { return Exit{Code: state.ExitCode()} }
