//go:build unix

package supervise

import (
	"encoding/binary"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// guard is the guardian's side: the process that guardian_unix.go starts. It
// reads messages from stdin, and answers on stdout.
type guard struct {
	plan   Plan
	group  int           // CMD's, and ours too; 0 before we have joined it
	until  time.Duration // the deadline of the lease, by uptime
	hasty  bool          // CMD has been sent a signal to end
	alone  bool          // redlatch is dead
	killAt time.Duration // when the group is killed; set when alone
}

const (
	// guardLook is how often a guardian checks the clock: timers do not run
	// while the machine is suspended.
	guardLook = time.Second
	// guardSweep is how often it checks whether the group is gone, once it has
	// been sent TERM.
	guardSweep = 10 * time.Millisecond
)

// isGuardian reports whether these arguments make this process a guardian.
func isGuardian(args []string) bool { return len(args) == 3 && args[0] == GuardianVerb }

// runGuardian is the main function of a guardian.
func runGuardian(args []string) int {
	// We are in CMD's group, and get the signals that are sent to it.
	signal.Ignore()
	grace, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return codeUsage
	}
	g := &guard{plan: NewPlan(time.Duration(grace), OnLost(args[1]))}
	for {
		switch heard, err := g.hear(g.patience()); {
		case err != nil:
			return CodeCannotRun
		case heard:
			continue // first read all messages
		}
		if g.due() {
			// This ends us too: nothing is left to do.
			g.say(saysKills)
			syscall.Kill(0, syscall.SIGKILL)
		}
		if g.alone && !g.hasCompany() {
			return 0
		}
	}
}

// patience is how long nothing is due.
func (g *guard) patience() time.Duration {
	wait := guardLook
	if g.alone {
		wait = guardSweep
	}
	if g.group != 0 && (g.until != 0 || g.alone) {
		wait = min(wait, g.end()-uptime())
	}
	return max(wait, 0)
}

// end is when the group is killed. Redlatch should have done it half a margin
// earlier.
func (g *guard) end() time.Duration {
	end := g.until - g.plan.margin/2
	if g.alone {
		end = min(end, g.killAt)
	}
	return end
}

// due reports whether the group must be killed now: redlatch is dead and the
// grace is over, or redlatch is stopped and the lease is about to end.
func (g *guard) due() bool {
	return g.group != 0 && (g.until != 0 || g.alone) && uptime() >= g.end()
}

// hear waits for a message and handles it. It returns false if none came.
func (g *guard) hear(wait time.Duration) (bool, error) {
	if g.alone {
		time.Sleep(wait) // poll would return at once: the pipe is closed
		return false, nil
	}
	ready := []unix.PollFd{{Fd: 0, Events: unix.POLLIN}}
	// Rounded up: otherwise we would poll without a pause in the last millisecond.
	n, err := unix.Poll(ready, int((wait+time.Millisecond-1)/time.Millisecond))
	switch {
	case err == unix.EINTR:
		return true, nil
	case err != nil || n == 0:
		return false, err
	}
	message := make([]byte, messageSize)
	if _, err := io.ReadFull(os.Stdin, message); err != nil {
		g.bereave()
		return false, nil
	}
	number := int64(binary.BigEndian.Uint64(message[1:]))
	switch message[0] {
	case sendGroup:
		// Fails if there is no such group in our session.
		if err := syscall.Setpgid(0, int(number)); err != nil {
			return false, err
		}
		g.group = int(number)
		g.say(saysJoined)
	case sendUntil:
		g.until = time.Duration(number)
	case sendHasty:
		g.hasty = true
	case askOthers:
		if g.hasCompany() {
			g.say(saysOthers)
		} else {
			g.say(saysAlone)
		}
	}
	return true, nil
}

// hasCompany reports whether anyone else is in the group. The kernel can be asked
// only from outside, so we leave the group for a moment.
func (g *guard) hasCompany() bool {
	if g.group == 0 || syscall.Setpgid(0, 0) != nil {
		return g.group != 0
	}
	if !groupLives(g.group) || syscall.Setpgid(0, g.group) != nil {
		g.group = 0
	}
	return g.group != 0
}

// bereave is called when redlatch has died. The group gets TERM, and has the
// usual time to end.
func (g *guard) bereave() {
	g.alone = true
	g.killAt = uptime()
	if g.group == 0 || g.hasty || g.plan.mode == Kill {
		return
	}
	g.killAt += g.plan.grace - g.plan.margin
	syscall.Kill(0, syscall.SIGTERM)
	syscall.Kill(0, syscall.SIGCONT) // a stopped process does not handle TERM
}

func (g *guard) say(what byte) { os.Stdout.Write([]byte{what}) }
