package main

import (
	"os"
	"syscall"
)

// There is no asking a process to end.
const terminateSignal = syscall.SIGKILL

func codeOf(state *os.ProcessState) int { return state.ExitCode() }

func signalOf(*os.ProcessState) syscall.Signal { return 0 }
