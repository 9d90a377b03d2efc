//go:build unix

package supervise

import (
	"encoding/binary"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/redlatch/redlatch/internal/childproc"
)

// The messages to the guardian: a letter and a number.
const (
	sendGroup = 'g' // the process group of CMD: join it
	sendUntil = 'u' // the deadline of the lease, by uptime
	sendHasty = 'h' // CMD has been sent a signal to end: it gets no second grace
	askOthers = '?' // is anyone in the group besides you?
)

const messageSize = 1 + 8

// The answers of the guardian, a byte each.
const (
	saysJoined = 'j' // it is in the group of CMD, and ignores every signal but KILL
	saysAlone  = 'a' // nobody else is in the group
	saysOthers = 'o' // somebody else is in the group
	saysKills  = 'k' // it kills the group now
)

// guardianPatience is how long a guardian may take to start, to join, or to
// answer. After that CMD runs without one.
const guardianPatience = 3 * time.Second

// guardian is a process that ends CMD's group if we cannot: when we are killed,
// or are stopped past the deadline. It is this program again, in guard_unix.go.
//
// It reads from a pipe of which we alone have the other end. The kernel closes
// the pipe however we end. A parent-death signal would reach CMD alone, and not
// what CMD started.
//
// It is a member of CMD's process group, and signals its own group alone. The
// number of a group can be reused, but not while the group has a member. The
// guardian joins before CMD starts: see gate_unix.go. CMD leads the group, not
// the guardian: a leader cannot leave its group, as timeout(1) and shells would.
type guardian struct {
	cmd     *exec.Cmd
	line    *os.File // nobody else has it open: when we end, it is closed
	answers *os.File
	joined  chan struct{} // closed when it has joined the group, or is gone
	others  chan bool     // gets whether anyone else is in the group
	gone    chan struct{} // closed when the guardian is gone
	until   time.Duration // the last deadline that was sent
	kills   atomic.Bool   // it has said that it kills the group
}

// startGuardian starts a guardian that follows the plan. A nil guardian is none,
// and has all methods.
func startGuardian(p Plan) (*guardian, error) {
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
	// It keeps nothing of the user's: neither the environment, with its secrets,
	// nor stdin, stdout, stderr or the folder.
	g.cmd = &exec.Cmd{
		Path:  childproc.Self(),
		Args:  []string{"redlatch", GuardianVerb, string(p.mode), strconv.FormatInt(int64(p.grace), 10)},
		Env:   []string{"GOMAXPROCS=1"},
		Dir:   "/",
		Stdin: theirs, Stdout: back,
		// Until it joins CMD's group, it has its own: it must not get a Ctrl-C.
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	forks.Lock()
	err = g.cmd.Start()
	forks.Unlock()
	if err != nil {
		line.Close()
		answers.Close()
		return nil, err
	}
	go g.listen()
	return g, nil
}

// listen reads the answers until the guardian is gone.
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
		case saysKills:
			g.kills.Store(true)
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

// lost returns a channel that is closed when the guardian is gone; nil if there
// is none.
func (g *guardian) lost() <-chan struct{} {
	if g == nil {
		return nil
	}
	return g.gone
}

// join makes the guardian join a group, and returns when it has or when it took
// too long. The leader of the group must not have been reaped.
func (g *guardian) join(group int) {
	g.send(sendGroup, int64(group))
	select {
	case <-g.joined:
	case <-time.After(guardianPatience):
	}
}

// hasCompany reports whether anyone but the guardian is in its group. It is not
// ok if the guardian did not answer.
func (g *guardian) hasCompany() (company, ok bool) {
	if g == nil || g.isGone() {
		return false, false
	}
	g.send(askOthers, 0)
	select {
	case company := <-g.others:
		return company, true
	case <-g.gone:
	case <-time.After(guardianPatience):
	}
	return false, false
}

// hasKilled reports whether the guardian killed the group: we were too late to
// extend the lease.
func (g *guardian) hasKilled() bool {
	g.hasCompany() // what it said before is read before its answer, or its end
	return g != nil && g.kills.Load()
}

// keep sends the guardian the deadline of the lease, if it has moved.
func (g *guardian) keep(left time.Duration) {
	if g == nil || left <= 0 {
		return
	}
	if until := uptime() + left; until > g.until+time.Millisecond && g.send(sendUntil, int64(until)) {
		g.until = until
	}
}

// hurry sends that CMD has been sent a signal to end.
func (g *guardian) hurry() { g.send(sendHasty, 0) }

// send sends a message and reports whether it was sent. It does not wait if the
// pipe is full. A message this small is never sent in part.
func (g *guardian) send(what byte, number int64) bool {
	if g == nil {
		return false
	}
	message := binary.BigEndian.AppendUint64([]byte{what}, uint64(number))
	conn, err := g.line.SyscallConn()
	if err != nil {
		return false
	}
	sent := false
	// Not a write with a deadline: that could pass before the first attempt.
	conn.Write(func(fd uintptr) bool {
		n, err := unix.Write(int(fd), message)
		sent = err == nil && n == len(message)
		return true
	})
	return sent
}

// dismiss kills the guardian. Otherwise it would take our exit for a death.
func (g *guardian) dismiss() {
	if g == nil {
		return
	}
	g.cmd.Process.Kill()
	g.cmd.Wait()
	g.line.Close()
	g.answers.Close()
}

// uptime is a clock that is the same in every process, cannot be set, and on
// Linux also runs while the machine is suspended.
func uptime() time.Duration {
	var now unix.Timespec
	if unix.ClockGettime(sharedClock, &now) != nil {
		return 0
	}
	return time.Duration(now.Nano())
}
