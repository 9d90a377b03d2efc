//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stopDelay is how long after it was sent a stop has surely shown.
const stopDelay = 100 * time.Millisecond

// child is CMD, in a process group of its own.
type child struct {
	group   int            // its process id, and that of its group
	guard   *guardian      // sits in the group; nil for none
	exited  chan ending    // gets how CMD ended, once
	stopped chan os.Signal // told when it was stopped
	tty     *terminal      // nil if we have none
}

// startChild starts cmd under a guardian, or without one, and in that case has
// it end with us if that is what is wanted. What cmd starts belongs to its
// group, unless it takes care not to.
func startChild(cmd *exec.Cmd, guard *guardian, endsWithUs bool) (*child, error) {
	c := &child{guard: guard, exited: make(chan ending, 1), stopped: make(chan os.Signal), tty: openTerminal()}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if guard == nil && endsWithUs {
		endWithParent(cmd.SysProcAttr)
	}
	if c.tty != nil && c.tty.give(cmd) {
		cmd.SysProcAttr.Foreground = true
		cmd.SysProcAttr.Ctty = c.tty.fd
	}
	started := make(chan error)
	go func() {
		// Linux ends the child with the thread that started it, not with the
		// process: this goroutine keeps its thread until the child is gone.
		runtime.LockOSThread()
		err := c.start(cmd)
		started <- err
		if err == nil {
			c.wait()
		}
	}()
	if err := <-started; err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// start starts cmd, with the guardian in its group before its first
// instruction.
func (c *child) start(cmd *exec.Cmd) error {
	if c.guard == nil {
		err := cmd.Start()
		if err == nil {
			c.group = cmd.Process.Pid
		}
		return err
	}
	held, gate, err := behindGate(cmd)
	if err != nil {
		return err
	}
	err = held.Start()
	gate.passed()
	if err != nil {
		gate.close()
		return err
	}
	c.group = held.Process.Pid
	c.guard.join(c.group)
	if err = gate.open(); err != nil {
		held.Wait()
	}
	return err
}

// wait reports what becomes of the child. It is not cmd.Wait, which does not
// tell of a child that was stopped.
func (c *child) wait() {
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(c.group, &status, syscall.WUNTRACED, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			c.exited <- ending{code: exitCannotRun} // nobody else waits for it: this cannot be
			return
		case status.Stopped():
			c.stopped <- status.StopSignal()
		case status.Signaled():
			c.exited <- ending{exitSignal + int(status.Signal()), status.Signal()}
			return
		case status.Exited():
			c.exited <- ending{code: status.ExitStatus()}
			return
		}
	}
}

// left reports whether anything of the group is alive.
func (c *child) left() bool {
	// As process 1 of a container we inherit what CMD orphaned. Should this
	// reap the guardian, it was dead before.
	for {
		if pid, err := syscall.Wait4(-c.group, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
			break
		}
	}
	if company, ok := c.guard.hasCompany(); ok {
		return company
	}
	// The guardian died with the group, or by itself, and until it is reaped it
	// would count as one of them.
	c.guard.dismiss()
	c.guard = nil
	return groupLives(c.group)
}

// terminate asks the group to end. What is stopped is woken, or it would not
// hear of it.
func (c *child) terminate() error {
	err := c.send(syscall.SIGTERM)
	c.send(syscall.SIGCONT)
	return errors.Join(err, c.mayEnd())
}

func (c *child) kill() error { return errors.Join(c.send(syscall.SIGKILL), c.mayEnd()) }

// mayEnd returns an error if CMD does not take our signals, being another
// user's. The group would not tell: the guardian is in it, and takes them.
func (c *child) mayEnd() error {
	if err := syscall.Kill(c.group, 0); err == syscall.EPERM {
		return err
	}
	return nil
}

// forward passes a signal on to the group. What is stopped is woken if it is to
// end, or it would not hear of it.
func (c *child) forward(s os.Signal) {
	c.send(s.(syscall.Signal))
	if ends(s) {
		c.send(syscall.SIGCONT)
	}
}

func (c *child) send(s syscall.Signal) error {
	err := syscall.Kill(-c.group, s)
	if err == syscall.ESRCH {
		return nil // it is gone
	}
	return err
}

// wantsTerminal gives the terminal to a child that was stopped for touching it
// while it was still ours, and reports whether it did.
func (c *child) wantsTerminal(s os.Signal) bool {
	if s != syscall.SIGTTIN && s != syscall.SIGTTOU || c.tty == nil || !c.tty.pass(c.group) {
		return false
	}
	c.send(syscall.SIGCONT)
	return true
}

// isJobStop reports whether a stop of CMD is one of the whole job, as by Ctrl-Z.
// A plain SIGSTOP while the terminal is not CMD's is somebody's who means CMD
// alone; the lock is kept meanwhile.
func (c *child) isJobStop(s os.Signal) bool {
	return s != syscall.SIGSTOP || c.tty != nil && c.tty.given
}

// keyed reports whether a signal that ended CMD can be a key of the terminal's,
// which sends it to CMD's group alone while that is in the foreground.
func (c *child) keyed(s syscall.Signal) bool {
	return (s == syscall.SIGINT || s == syscall.SIGQUIT) && c.tty != nil && c.tty.given
}

// pause stops CMD's group and ours, as the terminal would have if they were
// one, and returns when somebody has us go on. It does nothing, and reports so,
// where no shell could have us go on. stopped says that CMD has been already.
func (c *child) pause(stopped bool) bool {
	if c.tty == nil {
		return false
	}
	c.send(syscall.SIGSTOP)
	if !stopped {
		select {
		case <-c.stopped:
		case <-time.After(stopDelay): // it has just ended, perhaps
		}
	}
	if !c.tty.hasShell() {
		return true
	}
	c.tty.take()
	goOn := make(chan os.Signal, 1)
	signal.Notify(goOn, syscall.SIGCONT)
	defer signal.Stop(goOn)
	syscall.Kill(0, syscall.SIGSTOP)
	<-goOn // the stop may come a moment after Kill returns
	return true
}

// resume has the group go on after pause.
func (c *child) resume() {
	c.tty.pass(c.group)
	c.send(syscall.SIGCONT)
}

// close takes the terminal back.
func (c *child) close() {
	if c.tty != nil {
		c.tty.take()
	}
}

// forwarded are the signals that CMD gets when we do.
func forwarded() []os.Signal {
	return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH}
}

// ends reports whether a signal ends our waiting.
func ends(s os.Signal) bool {
	switch s {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
		return true
	}
	return false
}

// session is the session that we are in.
func session() int {
	id, _ := unix.Getsid(0)
	return id
}

// stopping are the signals on which we pause.
func stopping() []os.Signal { return []os.Signal{syscall.SIGTSTP} }

func isStop(s os.Signal) bool { return s == syscall.SIGTSTP }
