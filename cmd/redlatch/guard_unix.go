//go:build unix

package main

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

// The guardian's side: what the process does that guardian_unix.go starts. It
// gets messages on stdin, and answers on stdout.
type guard struct {
	plan   plan
	group  int           // CMD's, and ours too; 0 before we have joined it
	until  time.Duration // the lease's deadline, by uptime
	hasty  bool          // CMD was asked to end already
	alone  bool          // redlatch is dead
	killAt time.Duration // when the group is killed, once we are alone
}

const (
	// guardLook is how often a guardian looks at the clock: it may have been
	// suspended with the machine, and timers with it.
	guardLook = time.Second
	// guardSweep is how often it looks whether the group is gone, once it has
	// been asked to end.
	guardSweep = 10 * time.Millisecond
)

// isGuardian reports whether these arguments make this process a guardian.
func isGuardian(args []string) bool { return len(args) == 4 && args[0] == guardianVerb }

// runGuardian is the guardian's whole life.
func runGuardian(args []string) int {
	// What is sent to CMD's group is sent to us.
	signal.Ignore()
	grace, err1 := strconv.ParseInt(args[2], 10, 64)
	margin, err2 := strconv.ParseInt(args[3], 10, 64)
	if err1 != nil || err2 != nil {
		return exitUsage
	}
	g := &guard{plan: plan{mode: onLost(args[1]), grace: time.Duration(grace), margin: time.Duration(margin)}}
	for {
		switch heard, err := g.hear(g.patience()); {
		case err != nil:
			return exitCannotRun
		case heard:
			continue // whatever is due can wait until all was heard
		}
		if g.due() {
			// Ours too: nothing is left to do.
			syscall.Kill(0, syscall.SIGKILL)
		}
		if g.alone && !g.hasCompany() {
			return 0
		}
	}
}

// patience is how long there is nothing to do but listen.
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

// end is when the group is killed as things stand. Half of the margin comes
// after redlatch should have done it: it may be about to.
func (g *guard) end() time.Duration {
	end := g.until - g.plan.margin/2
	if g.alone {
		end = min(end, g.killAt)
	}
	return end
}

// due reports whether the group must not live any longer: because redlatch is
// dead and the grace is over, or because it stands still and the lease's end is
// near.
func (g *guard) due() bool {
	return g.group != 0 && (g.until != 0 || g.alone) && uptime() >= g.end()
}

// hear waits for a message and heeds it. It reports false if none came.
func (g *guard) hear(wait time.Duration) (bool, error) {
	if g.alone {
		time.Sleep(wait) // the line is dead and would not let us wait
		return false, nil
	}
	ready := []unix.PollFd{{Fd: 0, Events: unix.POLLIN}}
	// Rounded up, or the last millisecond would be spent asking.
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
	case tellGroup:
		// Refused if there is no such group, or not in our session.
		if err := syscall.Setpgid(0, int(number)); err != nil {
			return false, err
		}
		g.group = int(number)
		g.say(saysJoined)
	case tellUntil:
		g.until = time.Duration(number)
	case tellHasty:
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
// for that only from outside, so we step aside for a moment.
func (g *guard) hasCompany() bool {
	if g.group == 0 || syscall.Setpgid(0, 0) != nil {
		return g.group != 0
	}
	if !groupLives(g.group) || syscall.Setpgid(0, g.group) != nil {
		g.group = 0
	}
	return g.group != 0
}

// bereave does what is due when redlatch has died: the group is asked to end,
// and has as long for it as it would have had.
func (g *guard) bereave() {
	g.alone = true
	g.killAt = uptime()
	if g.group == 0 || g.hasty || g.plan.mode == onLostKill {
		return
	}
	g.killAt += g.plan.grace - g.plan.margin
	syscall.Kill(0, syscall.SIGTERM)
	syscall.Kill(0, syscall.SIGCONT) // what is stopped would not hear of it
}

func (g *guard) say(what byte) { os.Stdout.Write([]byte{what}) }
