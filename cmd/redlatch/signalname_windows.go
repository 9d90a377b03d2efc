package main

import "syscall"

// signalName is the name of a signal.
func signalName(s syscall.Signal) string { return s.String() }
