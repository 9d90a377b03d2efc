package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/redlatch/redlatch/internal/test/poll"
)

// console is a terminal with a process on it, seen from the keyboard.
type console struct {
	t        testing.TB
	keyboard *os.File
	cmd      *exec.Cmd

	mu     sync.Mutex
	screen strings.Builder
}

// onTerminal starts a command as the leader of a session with a terminal.
func onTerminal(t testing.TB, args ...string) *console {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	must(t, err)
	t.Cleanup(func() { master.Close() })
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	must(t, err)
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	must(t, err)
	defer slave.Close()
	c := &console{t: t, keyboard: master, cmd: exec.Command(args[0], args[1:]...)}
	c.cmd.Env = append(os.Environ(), "REDLATCH_STATE_DIR="+t.TempDir(), "PS1=ready> ", "TERM=dumb")
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = slave, slave, slave
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must(t, c.cmd.Start())
	t.Cleanup(func() { c.cmd.Process.Kill() })
	go func() {
		buf := make([]byte, 1024)
		for {
			n, err := master.Read(buf)
			c.mu.Lock()
			c.screen.Write(buf[:n])
			c.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return c
}

// shell starts an interactive shell on a terminal.
func shell(t testing.TB) *console {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Fatal("needs bash, for its job control: install it, or run make test, which does")
	}
	c := onTerminal(t, "bash", "--norc", "--noprofile", "-i")
	c.shows("ready> ")
	return c
}

// leave ends a shell.
func (c *console) leave() {
	c.types("exit\n")
	c.cmd.Wait()
}

// seen returns what the screen shows.
func (c *console) seen() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.screen.String()
}

// shows waits until the screen shows text, and clears it up to there. It
// returns what it showed.
func (c *console) shows(text string) string {
	c.t.Helper()
	var at int
	if !poll.Holds(poll.Patience, func() bool {
		at = strings.Index(c.seen(), text)
		return at >= 0
	}) {
		c.t.Fatalf("the terminal never shows %q, but:\n%s", text, c.seen())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.screen.String()
	c.screen.Reset()
	c.screen.WriteString(all[at+len(text):])
	return all[:at+len(text)]
}

func (c *console) types(keys string) {
	c.t.Helper()
	if _, err := c.keyboard.WriteString(keys); err != nil {
		c.t.Fatal(err)
	}
}

const (
	ctrlC    = "\x03"
	ctrlZ    = "\x1a"
	ctrlQuit = "\x1c" // Ctrl-\
)

func TestShellStopsAndResumesTheJob(t *testing.T) {
	t.Parallel()
	for _, how := range []string{
		"redlatch run job -- %s",
		"redlatch run job -- %s | cat",             // CMD gets the terminal when it reads from it
		"redlatch run job -- redlatch run 2 -- %s", // and gives it back
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			c := shell(t)
			c.types(fmt.Sprintf(how, "sed -u s/^/line:/") + "\n")
			c.types("one\n")
			c.shows("line:one")
			c.types(ctrlZ)
			c.shows("Stopped")
			c.types("fg\n")
			c.types("two\n")
			c.shows("line:two")
			c.types(ctrlC)
			c.shows("ready> ")
			c.types("redlatch run -n job -- echo is free\n")
			c.shows("\nis free")
			c.leave()
		})
	}
}

func TestJobThatWasStoppedForTooLongIsLost(t *testing.T) {
	t.Parallel()
	c := shell(t)
	c.types("redlatch run --ttl 5s job -- sed -u s/^/line:/\n")
	c.types("one\n")
	c.shows("line:one")
	c.types(ctrlZ)
	c.shows("Stopped")
	c.types("redlatch run job -- echo mine\n") // waits until the lock has expired
	c.shows("\nmine")
	c.types("fg\n")
	c.shows("CMD was ended")
	c.types("echo code $?\n")
	c.shows("code 79")
	c.leave()
}

// TestCommandThatIgnoresCtrlCEndsByTheQuitKey: both keys reach CMD's group only.
func TestCommandThatIgnoresCtrlCEndsByTheQuitKey(t *testing.T) {
	t.Parallel()
	c := shell(t)
	c.types(`redlatch run job -- sh -c 'trap "" INT; ulimit -c 0; echo sta$((0))rted; sleep 1000'` + "\n")
	c.shows("sta0rted")
	c.types(ctrlC)
	c.shows("^C")
	c.types(ctrlC)
	c.shows("^C")
	c.types(ctrlQuit)
	c.shows("ready> ")
	c.types("echo code $?; redlatch run -n job -- echo is free\n")
	c.shows("code 131")
	c.shows("\nis free")
	c.leave()
}
