package main

import "syscall"

// Windows cannot ask a process to end.
const terminateSignal = syscall.SIGKILL
