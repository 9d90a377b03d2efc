//go:build unix

package main

import (
	"encoding/binary"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// guardianVerb is the command line under which we are our own guardian.
const guardianVerb = "__guardian"

// What we tell the guardian: a letter and a number.
const (
	tellGroup = 'g' // CMD's process group: join it
	tellUntil = 'u' // the lease's deadline, by uptime
	tellHasty = 'h' // CMD was asked to end already: it gets no second grace
	askOthers = '?' // is anyone in the group besides you?
)

const messageSize = 1 + 8

// What the guardian answers, a byte each.
const (
	saysJoined = 'j' // it is in CMD's group, and no signal to that but KILL ends it
	saysAlone  = 'a' // nobody else is
	saysOthers = 'o' // somebody else is
)

// guardianPatience is how long a guardian may take to start, to join, or to
// answer. Without one CMD runs all the same.
const guardianPatience = 3 * time.Second

// guardian is a process that ends CMD's group if we cannot: when we are killed,
// or stand still past the deadline. It is this program again, in guard_unix.go.
//
// It hangs on a pipe of which we alone have the other end. The kernel closes
// that however we end, while a death signal would reach CMD alone and not what
// CMD started.
//
// It sits in CMD's process group, and signals no other than its own. A number
// that it was once told could be another group's by the time it is needed, but
// a group keeps its number for as long as it has a member. It joins before CMD
// begins: see gate_unix.go. It does not lead the group: CMD does, and so cannot
// leave it, as timeout(1) and shells would.
type guardian struct {
	cmd     *exec.Cmd
	line    *os.File // ours alone: its end is ours
	answers *os.File
	joined  chan struct{} // closed when it has, or is gone
	others  chan bool     // told whether anyone else is in the group
	gone    chan struct{} // closed when it is
	until   time.Duration // the last deadline that it was told
}

// startGuardian starts a guardian that acts by the plan. Nil stands for none.
func startGuardian(p plan) (*guardian, error) {
	theirs, line, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	answers, back, err := os.Pipe()
	if err != nil {
		line.Close()
		return nil, err
	}
	defer back.Close()
	g := &guardian{line: line, answers: answers,
		joined: make(chan struct{}), others: make(chan bool, 1), gone: make(chan struct{})}
	// Nothing of the user's is kept: not the environment and what secrets are
	// in it, not stdin, stdout or stderr, not the folder.
	g.cmd = &exec.Cmd{
		Path:  ownPath(),
		Args:  []string{"redlatch", guardianVerb, p.mode.String(), strconv.FormatInt(int64(p.grace), 10), strconv.FormatInt(int64(p.margin), 10)},
		Env:   []string{"GOMAXPROCS=1"},
		Dir:   "/",
		Stdin: theirs, Stdout: back,
		// Until it joins CMD's group, it has its own: a Ctrl-C is not for it.
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	if err := g.cmd.Start(); err != nil {
		line.Close()
		answers.Close()
		return nil, err
	}
	go g.listen()
	return g, nil
}

// ownPath is where our program is. Linux has a name for it that holds even
// after the file was replaced by a newer version.
func ownPath() string {
	if runtime.GOOS == "linux" {
		if _, err := os.Stat("/proc/self/exe"); err == nil {
			return "/proc/self/exe"
		}
	}
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

func (g *guardian) listen() {
	joined := sync.OnceFunc(func() { close(g.joined) })
	defer joined()
	defer close(g.gone)
	for said := make([]byte, 1); ; {
		if n, err := g.answers.Read(said); n == 0 || err != nil {
			return
		}
		switch said[0] {
		case saysJoined:
			joined()
		case saysAlone, saysOthers:
			g.others <- said[0] == saysOthers
		}
	}
}

func (g *guardian) isGone() bool {
	select {
	case <-g.gone:
		return true
	default:
		return false
	}
}

// lost is told when the guardian is gone. Without one it never is.
func (g *guardian) lost() <-chan struct{} {
	if g == nil {
		return nil
	}
	return g.gone
}

// join has the guardian watch over a group, and returns when it does or will
// not. The group's leader must not have been reaped.
func (g *guardian) join(group int) {
	g.tell(tellGroup, int64(group))
	timer := time.NewTimer(guardianPatience)
	defer timer.Stop()
	select {
	case <-g.joined:
	case <-timer.C:
	}
}

// hasCompany reports whether anyone but the guardian is in its group. Without an
// answer there is no guardian any more.
func (g *guardian) hasCompany() (company, ok bool) {
	if g == nil || g.isGone() {
		return false, false
	}
	g.tell(askOthers, 0)
	timer := time.NewTimer(guardianPatience)
	defer timer.Stop()
	select {
	case company := <-g.others:
		return company, true
	case <-g.gone:
	case <-timer.C:
	}
	return false, false
}

// keep tells the guardian how long the lease stands yet, if that is news.
func (g *guardian) keep(left time.Duration) {
	if g == nil || left <= 0 {
		return
	}
	if until := uptime() + left; until > g.until+time.Millisecond && g.tell(tellUntil, int64(until)) {
		g.until = until
	}
}

// hurry tells the guardian that CMD was asked to end.
func (g *guardian) hurry() { g.tell(tellHasty, 0) }

// tell sends a message, or none if the pipe is full: we have more to do than to
// wait for a guardian that does not read. So small a message is never sent in
// part. It reports whether it was sent.
func (g *guardian) tell(what byte, number int64) bool {
	if g == nil {
		return false
	}
	message := binary.BigEndian.AppendUint64([]byte{what}, uint64(number))
	conn, err := g.line.SyscallConn()
	if err != nil {
		return false
	}
	sent := false
	// Tried once, whatever the clock says: a deadline could pass before.
	conn.Write(func(fd uintptr) bool {
		n, err := unix.Write(int(fd), message)
		sent = err == nil && n == len(message)
		return true
	})
	return sent
}

// dismiss ends the guardian, before it can take our end for a death.
func (g *guardian) dismiss() {
	if g == nil {
		return
	}
	g.cmd.Process.Kill()
	g.cmd.Wait()
	g.line.Close()
	g.answers.Close()
}

// uptime is a clock that is the same in every process, that nobody sets, and
// that runs on while the machine is suspended.
func uptime() time.Duration {
	var now unix.Timespec
	if unix.ClockGettime(sharedClock, &now) != nil {
		return 0
	}
	return time.Duration(now.Nano())
}
