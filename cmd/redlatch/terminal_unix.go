//go:build unix

package main

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminal is the controlling terminal on our stdin. Its keys, Ctrl-C among
// them, go to one process group at a time: to ours, or to CMD's.
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

// foreground reports whether the terminal is our group's.
func (t *terminal) foreground() bool {
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	return err == nil && group == t.own
}

// hasShell reports whether our group is one of a shell's jobs, which it can
// stop and have go on. The group of the session's leader is nobody's job: that
// of a container's or an ssh command's only process.
func (t *terminal) hasShell() bool {
	session, err := unix.Getsid(0)
	return err == nil && session != t.own
}

// give reports whether cmd is to start with the terminal: if it is ours, and
// nobody in our group needs it. In `redlatch run … | less` the pager does; there
// CMD gets it when it asks.
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

// pass gives the terminal to group if it is ours to give, and reports whether
// it did.
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
	// Whoever takes the terminal from the background is stopped for it, unless
	// it ignores that. Only now: CMD would have inherited it.
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, t.own)
}
