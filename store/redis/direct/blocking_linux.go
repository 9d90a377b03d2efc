package direct

import (
	"net"
	"os"
	"runtime"
	"syscall"
)

// blocking takes over a socket from Go's poller, so that a reply wakes no thread but
// that of the caller who waits for it in the kernel, for as long as longestRead. It
// returns nil if that is of no use, or not possible. net.FileConn is the way back.
func blocking(socket any) (file *os.File) {
	tcp, ok := socket.(*net.TCPConn)
	// A caller that waits in the kernel needs another thread to run the others.
	if !ok || runtime.GOMAXPROCS(0) == 1 {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	raw.Control(func(fd uintptr) {
		limit := syscall.NsecToTimeval(int64(longestRead))
		if syscall.SetsockoptTimeval(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &limit) != nil {
			return
		}
		// From 3 on: a file that is taken for standard output raises SIGPIPE.
		if fd, _, errno := syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_DUPFD_CLOEXEC, 3); errno == 0 {
			syscall.SetNonblock(int(fd), false) // the poller does not take it then
			file = os.NewFile(fd, "socket")
		}
	})
	if file != nil {
		tcp.Close() // the copy stays open
	}
	return file
}

// unread reports whether something has arrived on a blocking socket, or its end.
func unread(file *os.File) bool {
	nothing := false
	if raw, err := file.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) {
			_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_DONTWAIT)
			nothing = err == syscall.EAGAIN
		})
	}
	return !nothing
}
