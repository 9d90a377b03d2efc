//go:build unix

package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/redlatch/redlatch/internal/childproc"
)

// member is a client of the run: a process, which is replaced by another when
// it was killed.
type member struct {
	number int // from 1
	path   string
	args   []string
	config clientConfig
	hear   func(Event)
	errors io.Writer // what its processes write to stderr
	struck bool      // the nemesis knows that it has a fault

	mu    sync.Mutex
	cmd   *exec.Cmd
	stdin io.WriteCloser
	gone  chan struct{} // closed when the process has ended and all its output was read
}

// start starts the next process of this client.
func (m *member) start() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.config.Life++
	cmd := &exec.Cmd{Path: m.path, Args: m.args, Stderr: m.errors, SysProcAttr: childproc.Apart()}
	// The race detector makes a process that succeeds sleep for a second.
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	// Not by StdoutPipe, which is closed when the process has ended, even if
	// not all was read.
	ours, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stdout = theirs
	wait, err := childproc.Start(cmd)
	theirs.Close()
	if err != nil {
		ours.Close()
		return fmt.Errorf("client %d cannot be started: %w", m.number, err)
	}
	gone := make(chan struct{})
	m.cmd, m.stdin, m.gone = cmd, stdin, gone
	go func() {
		defer close(gone)
		defer wait()
		defer ours.Close()
		for events := json.NewDecoder(ours); ; {
			var e Event
			if events.Decode(&e) != nil {
				return // also if the last line is cut short
			}
			m.hear(e)
		}
	}()
	return json.NewEncoder(stdin).Encode(m.config)
}

func (m *member) signal(s syscall.Signal) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cmd == nil {
		return errors.New("the client has ended")
	}
	return m.cmd.Process.Signal(s)
}

func (m *member) freeze() error { return m.signal(syscall.SIGSTOP) }

func (m *member) thaw() error { return m.signal(syscall.SIGCONT) }

// setClock sets the client's wall clock, for its next processes as well.
func (m *member) setClock(off time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.config.WallOff = off
	return json.NewEncoder(m.stdin).Encode(off)
}

// kill ends the process at once.
func (m *member) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cmd == nil {
		return
	}
	m.cmd.Process.Kill()
	<-m.gone
	m.stdin.Close()
	m.cmd = nil
}

// end orders the client to end, and waits until it has. A client that does not
// end is killed, which is an error.
func (m *member) end(limit time.Duration) error {
	m.mu.Lock()
	cmd, gone := m.cmd, m.gone
	if cmd != nil {
		m.stdin.Close()
	}
	m.mu.Unlock()
	if cmd == nil {
		return fmt.Errorf("client %d has ended", m.number)
	}
	select {
	case <-gone:
	case <-time.After(limit):
		m.kill()
		return fmt.Errorf("client %d did not end within %v", m.number, limit)
	}
	if code := cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("client %d ended with %d", m.number, code)
	}
	return nil
}
