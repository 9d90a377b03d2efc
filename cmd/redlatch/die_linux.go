package main

import (
	"os"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// dieBy has this process die by a signal, and with keyed all of its process
// group. It returns where the kernel protects us, as process 1 of a container.
//
// The default action is set by hand. os/signal could only bring back the Go
// runtime's own, which for QUIT is a stack trace and exit code 2, and for the
// others code 2 in a process 1.
func dieBy(s syscall.Signal, keyed bool) {
	// QUIT would leave a core: ours, where CMD's own may be. The resource limit
	// does not count if cores are piped to a program; this does.
	unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	setSize := uintptr(8) // of a set of signals, in bytes
	if strings.HasPrefix(runtime.GOARCH, "mips") {
		setSize = 16
	}
	// A struct sigaction of zeros, whatever its layout, is the default action.
	var byDefault [128]byte
	unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&byDefault)), 0, setSize, 0, 0)
	if keyed {
		unix.Kill(0, s)
	}
	// To this very thread: then the call does not return.
	runtime.LockOSThread()
	unix.Tgkill(os.Getpid(), unix.Gettid(), s)
}
