//go:build unix

package supervise

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminal is the controlling terminal on our stdin. Its keys, such as Ctrl-C,
// go to the foreground process group: ours, or CMD's.
type terminal struct {
	fd    int
	own   int  // our process group
	given bool // CMD's group has it
}

// openTerminal returns nil if stdin is no terminal, or not ours.
func openTerminal() *terminal {
	t := &terminal{fd: int(os.Stdin.Fd()), own: syscall.Getpgrp()}
	if _, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP); err != nil {
		return nil
	}
	return t
}

// foreground reports whether our group is in the foreground.
func (t *terminal) foreground() bool {
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	return err == nil && group == t.own
}

// hasShell reports whether our group is a job of a shell, which can stop and
// continue it. The group of the session leader is not: that is the only process
// of a container, or of an ssh command.
func (t *terminal) hasShell() bool {
	session, err := unix.Getsid(0)
	return err == nil && session != t.own
}

// give reports whether cmd is to start in the foreground: if our group is there,
// and nobody else in it needs the terminal. In `redlatch run … | less` the pager
// needs it; there CMD gets the terminal when it reads from it.
func (t *terminal) give(cmd *exec.Cmd) bool {
	out, ok := cmd.Stdout.(*os.File)
	if !ok || !t.foreground() {
		return false
	}
	if _, err := unix.IoctlGetInt(int(out.Fd()), unix.TIOCGPGRP); err != nil {
		return false
	}
	t.given = true
	return true
}

// pass gives the terminal to group if our group has it, and reports whether it
// did.
func (t *terminal) pass(group int) bool {
	if t.given || !t.foreground() {
		return false
	}
	t.given = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group) == nil
	return t.given
}

// take gets the terminal back.
func (t *terminal) take() {
	if !t.given {
		return
	}
	t.given = false
	// A background process that takes the terminal is stopped by TTOU, unless it
	// ignores that. We ignore it here alone: CMD would have inherited it.
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, t.own)
}
