//go:build unix

package main

import "syscall"

// terminateSignal asks a process to end.
const terminateSignal = syscall.SIGTERM
