//go:build unix

package redisproc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redlatch/redlatch/internal/owned"
)

// Server is a redis-server process, or the place for one: it may be down.
type Server struct {
	Program  string   // redis-server or valkey-server
	Wrap     []string // a command line that runs another, or nothing
	Bind     []string // addresses
	Port     int
	Dir      string   // its folder, which is made
	Settings []string // as on the command line: "--maxmemory", "10mb"
	Env      []string // besides our own

	mu   sync.Mutex
	cmd  *exec.Cmd
	gone chan struct{} // closed when the process has ended
}

// startLimit is how long a server may take until it answers.
const startLimit = 20 * time.Second

// Start starts the process, if it does not run, and waits until it answers.
// Other settings may take the place of those it had.
func (s *Server) Start(settings ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		return nil
	}
	if settings != nil {
		s.Settings = settings
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	os.Remove(s.socket()) // of a process that was killed
	args := []string{s.Program, "--port", strconv.Itoa(s.Port), "--bind"}
	args = append(append(s.Wrap[:len(s.Wrap):len(s.Wrap)], args...), s.Bind...)
	args = append(args, "--dir", s.Dir, "--unixsocket", s.socket(), "--protected-mode", "no",
		"--save", "", "--appendonly", "no", "--daemonize", "no", "--logfile", filepath.Join(s.Dir, "log"))
	cmd := exec.Command(args[0], append(args[1:], s.Settings...)...)
	cmd.Env = append(os.Environ(), s.Env...)
	cmd.SysProcAttr = owned.Apart()
	wait, err := owned.Start(cmd)
	if err != nil {
		return fmt.Errorf("%s cannot be started: %w", s.Program, err)
	}
	gone := make(chan struct{})
	go func() {
		wait()
		close(gone)
	}()
	s.cmd, s.gone = cmd, gone
	return s.await()
}

// await waits until the server answers a PING.
func (s *Server) await() error {
	for end := time.Now().Add(startLimit); time.Now().Before(end); {
		if reply, err := s.ask("PING"); err == nil && reply == "PONG" {
			return nil
		}
		select {
		case <-s.gone:
			s.cmd = nil
			return fmt.Errorf("the server on port %d ended by itself: %s", s.Port, s.lastWords())
		case <-time.After(5 * time.Millisecond): // nothing tells us when it listens
		}
	}
	return fmt.Errorf("the server on port %d does not answer: %s", s.Port, s.lastWords())
}

// lastWords is the last line of the server's log.
func (s *Server) lastWords() string {
	text, err := os.ReadFile(filepath.Join(s.Dir, "log"))
	if err != nil {
		return "it left no log"
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}

// socket is where the server can be asked whatever becomes of its network. The
// path is short, for it is bounded.
func (s *Server) socket() string { return filepath.Join(s.Dir, "s") }

// Ask sends a command, by a way that no fault of the network touches.
func (s *Server) Ask(args ...string) (string, error) { return s.ask(args...) }

func (s *Server) ask(args ...string) (string, error) {
	return Ask("unix", s.socket(), 3*time.Second, args...)
}

// errDown is returned for what only a running server can do.
var errDown = errors.New("the server is down")

// Signal sends the process a signal.
func (s *Server) Signal(sig syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return errDown
	}
	return s.cmd.Process.Signal(sig)
}

// Freeze stops the process where it is: connections stay open, and nothing is
// answered.
func (s *Server) Freeze() error { return s.Signal(syscall.SIGSTOP) }

// Thaw lets a frozen process go on.
func (s *Server) Thaw() error { return s.Signal(syscall.SIGCONT) }

// Kill ends the process at once, as kill -9 does, and waits until it has.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return
	}
	s.cmd.Process.Kill() // also one that is frozen
	<-s.gone
	s.cmd = nil
}

// Pid returns the process's id, or 0 if the server is down.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return 0
	}
	return s.cmd.Process.Pid
}
