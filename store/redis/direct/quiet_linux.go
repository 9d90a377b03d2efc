package direct

import (
	"cmp"
	"net"
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

// quiet is a quietSocket: a TCP socket that Go's poller does not know, so that a
// reply wakes no thread but the one that waits for it. It is blocking. The
// goroutine of the connection waits, in Go's poller, for an epoll descriptor of
// our own, which has the socket and reports what we choose.
type quiet struct {
	net.Conn // the socket as it was; it is closed
	file     *os.File
	epoll    *os.File
	socket   syscall.RawConn // of file: keeps it open while it is used
	events   syscall.RawConn // of epoll
	fd       int32
	ready    bool // the next Read does not wait

	// Memory and functions that are used again.
	polled pollFD
	left   syscall.Timespec
	came   bool
	poll   func(fd uintptr)
	first  [1]byte
	peek   func(fd uintptr)
	found  [1]syscall.EpollEvent
	take   func(fd uintptr) bool
}

// pollFD is struct pollfd of poll(2).
type pollFD struct {
	fd              int32
	events, revents int16
}

const pollIn = 1

// newQuiet takes over a connection. It returns nil if that is of no use, or not
// possible: the connection is as it was then.
func newQuiet(conn net.Conn) quietSocket {
	tcp, ok := conn.(*net.TCPConn)
	// A caller that waits in the kernel needs another thread to run the others.
	if !ok || runtime.GOMAXPROCS(0) == 1 {
		return nil
	}
	q := &quiet{Conn: conn}
	if !q.open(tcp) {
		q.close()
		return nil
	}
	q.poll, q.peek, q.take = q.pollSocket, q.peekSocket, q.takeEvent
	conn.Close() // ours stays open
	return q
}

// open makes the descriptors. No child inherits them.
func (q *quiet) open(tcp *net.TCPConn) bool {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return false
	}
	epoll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return false
	}
	syscall.SetNonblock(epoll, true) // so that Go's poller takes it
	q.epoll = os.NewFile(uintptr(epoll), "epoll")
	if q.epoll.SetReadDeadline(time.Time{}) != nil {
		return false
	}
	fd, errno := uintptr(0), syscall.EBADF
	raw.Control(func(old uintptr) {
		// From 3 on: a file that is taken for standard output raises SIGPIPE.
		fd, _, errno = syscall.Syscall(syscall.SYS_FCNTL, old, syscall.F_DUPFD_CLOEXEC, 3)
	})
	if errno != 0 {
		return false
	}
	// Blocking, so that Go's poller does not take it. The old descriptor shares
	// that, and is not used any more.
	if err := syscall.SetNonblock(int(fd), false); err != nil {
		syscall.Close(int(fd))
		return false
	}
	q.fd, q.file = int32(fd), os.NewFile(fd, "socket")
	if q.socket, err = q.file.SyscallConn(); err == nil {
		q.events, err = q.epoll.SyscallConn()
	}
	if err == nil {
		err = q.control(syscall.EPOLL_CTL_ADD, true)
	}
	if err != nil {
		syscall.SetNonblock(int(fd), true)
	}
	return err == nil
}

func (q *quiet) watch(replies bool) { q.control(syscall.EPOLL_CTL_MOD, replies) }

func (q *quiet) control(op int, replies bool) error {
	e := syscall.EpollEvent{Events: syscall.EPOLLRDHUP | syscall.EPOLLONESHOT}
	if replies {
		e.Events = syscall.EPOLLIN | syscall.EPOLLRDHUP
	}
	var err error
	closed := q.events.Control(func(epoll uintptr) { err = syscall.EpollCtl(int(epoll), op, int(q.fd), &e) })
	return cmp.Or(closed, err)
}

func (q *quiet) awaitEvent() error { return q.events.Read(q.take) }

// takeEvent takes an event, if there is one, so that the next one is noticed.
func (q *quiet) takeEvent(epoll uintptr) bool {
	n, err := syscall.EpollWait(int(epoll), q.found[:], 0)
	return n > 0 || err != nil && err != syscall.EINTR
}

func (q *quiet) readable() { q.ready = true }

func (q *quiet) await(limit time.Duration) (left time.Duration, came bool) {
	q.left = syscall.NsecToTimespec(int64(max(limit, 0)))
	q.came = false
	q.socket.Control(q.poll)
	q.ready = q.came
	return time.Duration(q.left.Nano()), q.came
}

// pollSocket enters the kernel as every blocking call does, so the scheduler can
// give the processor to others. The kernel sets q.left to the time that is left,
// also if a signal interrupts it.
func (q *quiet) pollSocket(fd uintptr) {
	for errno := syscall.EINTR; errno == syscall.EINTR; {
		q.polled = pollFD{fd: int32(fd), events: pollIn}
		var n uintptr
		n, _, errno = syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&q.polled)), 1, uintptr(unsafe.Pointer(&q.left)), 0, 0, 0)
		q.came = errno == 0 && n > 0
	}
}

func (q *quiet) unread() bool {
	q.came = true // unless the kernel says that there is nothing
	q.socket.Control(q.peek)
	return q.came
}

func (q *quiet) peekSocket(fd uintptr) {
	_, _, err := syscall.Recvfrom(int(fd), q.first[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	q.came = err != syscall.EAGAIN
}

// Read waits, in Go's poller, unless something is known to have arrived.
func (q *quiet) Read(b []byte) (int, error) {
	if !q.ready {
		if err := q.awaitEvent(); err != nil {
			return 0, err
		}
	}
	q.ready = false
	return q.file.Read(b)
}

func (q *quiet) Write(b []byte) (int, error) { return q.file.Write(b) }

// Close ends all calls, and closes both descriptors when the last of them has
// returned.
func (q *quiet) Close() error {
	q.socket.Control(func(fd uintptr) { syscall.Shutdown(int(fd), syscall.SHUT_RDWR) })
	q.close()
	return nil
}

func (q *quiet) close() {
	for _, f := range []*os.File{q.file, q.epoll} {
		if f != nil {
			f.Close()
		}
	}
}
