package main

import "syscall"

// signalName is the name of a signal.
func signalName(s syscall.Signal) string { return s.String() }

// session is the same for all.
func session() int { return 0 }

// Windows cannot ask a process to end.
const terminateSignal = syscall.SIGKILL
