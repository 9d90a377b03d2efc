//go:build unix

package foreign

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Answer is what a driver answered to an order: its first word, and the rest.
type Answer struct{ Word, Text string }

// OK reports a success.
func (a Answer) OK() bool { return a.Word == "ok" }

func (a Answer) String() string { return strings.TrimSpace(a.Word + " " + a.Text) }

// patience is how long to wait for a driver. It is longer than the time that a
// driver allows its client, and than the start of a JVM on a busy machine.
const patience = 60 * time.Second

// Process is a driver that runs: one foreign client, in a process of its own.
type Process struct {
	Version string // of the client, as the driver reports it

	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan string
	stderr bytes.Buffer
	once   sync.Once
}

// Start starts a client's driver on the servers, given as host:port, and waits
// until it is ready.
func Start(c *Client, addresses []string) (*Process, error) {
	argv, err := c.argv()
	if err != nil {
		return nil, err
	}
	return Run(c.Name, append(argv[:len(argv):len(argv)], addresses...), c.env()...)
}

// Run starts a driver by its command line, with variables of its own, and waits
// until it is ready. The name is for errors.
func Run(name string, argv []string, env ...string) (*Process, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	var err error
	p := &Process{cmd: cmd, lines: make(chan string, 16)}
	cmd.Stderr = &p.stderr
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	if ready := p.next(); ready.Word != "ready" {
		p.Kill()
		return nil, fmt.Errorf("the driver of %s is not ready: %s", name, ready)
	} else {
		p.Version = ready.Text
	}
	return p, nil
}

// Acquire asks once for the name.
func (p *Process) Acquire(name string, ttl time.Duration) Answer {
	return p.Order("acquire", name, fmt.Sprint(ttl.Milliseconds()))
}

// Extend renews the time of what is held.
func (p *Process) Extend(ttl time.Duration) Answer {
	return p.Order("extend", fmt.Sprint(ttl.Milliseconds()))
}

// Release frees what is held.
func (p *Process) Release() Answer { return p.Order("release") }

// Order sends an order and returns the answer.
func (p *Process) Order(words ...string) Answer {
	if _, err := fmt.Fprintln(p.in, strings.Join(words, " ")); err != nil {
		return p.fault("the driver is gone")
	}
	return p.next()
}

func (p *Process) next() Answer {
	select {
	case line, ok := <-p.lines:
		if !ok {
			return p.fault("the driver ended")
		}
		word, text, _ := strings.Cut(line, " ")
		return Answer{word, text}
	case <-time.After(patience):
		return p.fault(fmt.Sprintf("the driver has not answered for %v", patience))
	}
}

// fault is an answer in place of a driver's, with the end of what that wrote to its
// standard error. It ends the driver, which may write until then.
func (p *Process) fault(what string) Answer {
	p.Kill()
	text := p.stderr.String()
	return Answer{"error", what + ": " + strings.Join(strings.Fields(text[max(0, len(text)-2000):]), " ")}
}

// Freeze stops the process where it is, timers and all.
func (p *Process) Freeze() { p.cmd.Process.Signal(syscall.SIGSTOP) }

// Thaw lets it continue.
func (p *Process) Thaw() { p.cmd.Process.Signal(syscall.SIGCONT) }

// Kill ends it at once, as kill -9 does.
func (p *Process) Kill() {
	p.once.Do(func() {
		p.cmd.Process.Kill()
		for range p.lines {
		}
		p.cmd.Wait()
	})
}
