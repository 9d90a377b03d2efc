// Package server runs the servers that locks are measured on: real processes
// on free loopback ports, each in a folder of its own, ended by their own
// process ids.
package server

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/redlatch/redlatch/bench/clock"
)

// process is a server's process.
type process struct {
	cmd  *exec.Cmd
	log  string
	dead chan struct{} // closed when it has ended

	mu      sync.Mutex
	frozen  bool
	stopped bool
}

// start starts a program whose output goes to a file in dir.
func start(dir, program string, args ...string) (*process, error) {
	p := &process{log: filepath.Join(dir, "log"), dead: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd = exec.Command(program, args...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = ownGroup()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s (make deps installs it): %w", program, err)
	}
	go func() {
		p.cmd.Wait()
		close(p.dead)
	}()
	return p, nil
}

// await waits until ready returns nil.
func (p *process) await(ready func() error) error {
	var err error
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		if err = ready(); err == nil {
			return nil
		}
		select {
		case <-p.dead:
			text, _ := os.ReadFile(p.log)
			return fmt.Errorf("%s ended; its log:\n%s", p.cmd.Path, text)
		case <-time.After(5 * time.Millisecond): // nothing tells us when it listens
		}
	}
	text, _ := os.ReadFile(p.log)
	return fmt.Errorf("%s does not answer: %w; its log:\n%s", p.cmd.Path, err, text)
}

// stop ends the process and waits until it is gone.
func (p *process) stop() {
	p.mu.Lock()
	first := !p.stopped
	p.stopped = true
	p.mu.Unlock()
	if first {
		p.cmd.Process.Kill() // a frozen process too is ended by this
	}
	<-p.dead
}

// freeze stops the process where it is: connections stay open, and nothing is
// answered.
func (p *process) freeze() error { return p.signal(syscall.SIGSTOP, true) }

// thaw lets a frozen process go on.
func (p *process) thaw() error { return p.signal(syscall.SIGCONT, false) }

func (p *process) signal(s syscall.Signal, frozen bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.cmd.Process.Signal(s); err != nil {
		return err
	}
	p.frozen = frozen
	return nil
}

func (p *process) isFrozen() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.frozen
}

func (p *process) cpu() time.Duration {
	d, _ := clock.OfProcess(p.cmd.Process.Pid)
	return d
}

// freePort returns a loopback port that nobody listens on. Those handed out
// before are not handed out again: nobody may be listening on them yet.
func freePort() (string, error) {
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		port := l.Addr().(*net.TCPAddr).Port
		l.Close()
		if _, twice := given.LoadOrStore(port, true); !twice {
			return strconv.Itoa(port), nil
		}
	}
}

var given sync.Map
