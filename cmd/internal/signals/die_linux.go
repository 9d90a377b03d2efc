package signals

import (
	"os"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// DieBy ends this process by a signal, so that its parent sees which one. With
// group, the whole process group gets it. DieBy returns where the kernel
// protects us, as process 1 of a container.
//
// The default action is set by a system call. os/signal can only restore the
// action of the Go runtime, which for QUIT is a stack trace and exit code 2,
// and in process 1 is exit code 2 for the other signals too.
func DieBy(s syscall.Signal, group bool) {
	// QUIT would write a core file of this process, perhaps over that of CMD. A
	// resource limit does not prevent it if cores are piped to a program.
	unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	setSize := uintptr(8) // of a signal set, in bytes
	if strings.HasPrefix(runtime.GOARCH, "mips") {
		setSize = 16
	}
	// A struct sigaction of zeros is the default action, in every layout.
	var byDefault [128]byte
	unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&byDefault)), 0, setSize, 0, 0)
	if group {
		unix.Kill(0, s)
	}
	// To this thread: then the call does not return.
	runtime.LockOSThread()
	unix.Tgkill(os.Getpid(), unix.Gettid(), s)
}
