//go:build unix

package supervise

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/redlatch/redlatch/cmd/internal/signals"
	"github.com/redlatch/redlatch/internal/childproc"
)

// stopDelay is how long we wait for a stop signal to take effect.
const stopDelay = 100 * time.Millisecond

// child is CMD, in a process group of its own.
type child struct {
	group   int            // its process id, and that of its group
	guard   *guardian      // in the group; nil for none
	exited  chan ending    // gets how CMD ended, once
	stopped chan os.Signal // gets the signal that stopped CMD
	tty     *terminal      // nil if we have none
}

// startChild starts cmd with a guardian. Without one, endsWithUs makes the
// kernel end cmd with us, where it can.
func startChild(cmd *exec.Cmd, guard *guardian, endsWithUs bool) (*child, error) {
	c := &child{guard: guard, exited: make(chan ending, 1), stopped: make(chan os.Signal), tty: openTerminal()}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if guard == nil && endsWithUs {
		cmd.SysProcAttr = childproc.Apart() // it reaches CMD alone, not the rest of its group
	}
	if c.tty != nil && c.tty.give(cmd) {
		cmd.SysProcAttr.Foreground = true
		cmd.SysProcAttr.Ctty = c.tty.fd
	}
	started := make(chan error)
	go func() {
		// Linux ends the child with the thread that started it, not with the
		// process. So this goroutine keeps its thread until the child is gone.
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
		forks.Lock()
		err := cmd.Start()
		forks.Unlock()
		if err == nil {
			c.group = cmd.Process.Pid
		}
		return err
	}
	forks.Lock()
	held, gate, err := behindGate(cmd)
	if err != nil {
		forks.Unlock()
		return err
	}
	err = held.Start()
	gate.passed()
	forks.Unlock()
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

// pid is CMD's process id.
func (c *child) pid() int { return c.group }

// wait reports when CMD stops and when it ends. cmd.Wait does not report stops.
func (c *child) wait() {
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(c.group, &status, syscall.WUNTRACED, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			// Cannot happen: nobody else waits for this process.
			c.exited <- ending{Exit: Exit{Code: CodeCannotRun}}
			return
		case status.Stopped():
			c.stopped <- status.StopSignal()
		case status.Signaled():
			c.exited <- ending{exitOf(status), status.Signal()}
			return
		case status.Exited():
			c.exited <- ending{Exit: exitOf(status)}
			return
		}
	}
}

// left reports whether a process of the group is alive.
func (c *child) left() bool {
	// As process 1 of a container we inherit the orphans of CMD, and reap them.
	// If this reaps the guardian, that was dead already.
	for {
		if pid, err := syscall.Wait4(-c.group, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
			break
		}
	}
	if company, ok := c.guard.hasCompany(); ok {
		return company
	}
	// The guardian is dead. Until it is reaped, it would count as a member.
	c.guard.dismiss()
	c.guard = nil
	return groupLives(c.group)
}

// terminate sends the group TERM, and continues what is stopped: a stopped
// process does not handle signals.
func (c *child) terminate() error {
	err := c.send(syscall.SIGTERM)
	c.send(syscall.SIGCONT)
	return errors.Join(err, c.mayEnd())
}

func (c *child) kill() error { return errors.Join(c.send(syscall.SIGKILL), c.mayEnd()) }

// mayEnd returns an error if CMD is another user's and does not take our
// signals. A signal to the group does not show this: the guardian takes it.
func (c *child) mayEnd() error {
	if err := syscall.Kill(c.group, 0); err == syscall.EPERM {
		return err
	}
	return nil
}

// forward sends the group a signal that we received. If the signal ends a
// process, what is stopped is continued so that it can handle it.
func (c *child) forward(s os.Signal) {
	c.send(s.(syscall.Signal))
	if signals.Ends(s) {
		c.send(syscall.SIGCONT)
	}
}

func (c *child) send(s syscall.Signal) error {
	err := syscall.Kill(-c.group, s)
	if err == syscall.ESRCH {
		return nil // the group is gone
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

// isJobStop reports whether a stop of CMD is for the whole job, as by Ctrl-Z. A
// SIGSTOP while the terminal is not CMD's is for CMD alone; the lock is kept.
func (c *child) isJobStop(s os.Signal) bool {
	return s != syscall.SIGSTOP || c.tty != nil && c.tty.given
}

// keyed reports whether a signal that ended CMD can be from a key of the
// terminal. The terminal sends it to the foreground group alone, which is CMD's.
func (c *child) keyed(s syscall.Signal) bool {
	return (s == syscall.SIGINT || s == syscall.SIGQUIT) && c.tty != nil && c.tty.given
}

// pause stops CMD's group and ours, as the terminal would if they were one, and
// returns when we are continued. Without a terminal it does nothing, and returns
// false: no shell would continue us. stopped says that CMD is stopped already.
func (c *child) pause(stopped bool) bool {
	if c.tty == nil {
		return false
	}
	c.send(syscall.SIGSTOP)
	if !stopped {
		select {
		case <-c.stopped:
		case <-time.After(stopDelay): // it may have ended just now
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
	<-goOn // the stop may be delivered after Kill returns
	return true
}

// resume continues the group after pause.
func (c *child) resume() {
	c.tty.pass(c.group)
	c.send(syscall.SIGCONT)
}

// close gets the terminal back for our group.
func (c *child) close() {
	if c.tty != nil {
		c.tty.take()
	}
}

// Forwarded are the signals that CMD gets when we get them.
func Forwarded() []os.Signal {
	return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH}
}

// stops are the signals on which we pause.
func stops() []os.Signal { return []os.Signal{syscall.SIGTSTP} }

func isStop(s os.Signal) bool { return s == syscall.SIGTSTP }
