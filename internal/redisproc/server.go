//go:build unix

package redisproc

import (
	"errors"
	"fmt"
	"net"
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
	Port     int      // 0 for a free one, chosen at the first start
	Dir      string   // its folder, which is made
	Sentinel string   // a sentinel's configuration file; empty for a server
	Settings []string // as on the command line: "--maxmemory", "10mb"
	Env      []string // besides our own

	mu   sync.Mutex
	cmd  *exec.Cmd
	gone chan struct{} // closed when the process has ended
}

// startLimit is how long a server may take until it answers.
const startLimit = 3 * time.Minute

// askLimit is how long an answer may take.
const askLimit = time.Minute

// Start starts the process, if it does not run, and waits until it answers.
// Other settings may take the place of those it had.
func (s *Server) Start(settings ...string) error { return s.start(answers, settings) }

// Listen is like Start, and waits only until the server takes connections: it
// may be loading its data.
func (s *Server) Listen(settings ...string) error { return s.start(listens, settings) }

func (s *Server) start(ready func(reply string, err error) bool, settings []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		return nil
	}
	if settings != nil {
		s.Settings = settings
	}
	if s.Port != 0 {
		return s.launch(ready)
	}
	// Between the choice of a free port and its use another process may take it.
	for tries := 1; ; tries++ {
		port, err := choosePort()
		if err != nil {
			return err
		}
		s.Port = port
		if err = s.launch(ready); err == nil || tries == 5 || !errors.Is(err, errPortTaken) {
			return err
		}
	}
}

// launch starts the process and waits until it is ready.
func (s *Server) launch(ready func(reply string, err error) bool) error {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	os.Remove(s.socket()) // of a process that was killed
	os.Remove(s.log())
	args := append(s.Wrap[:len(s.Wrap):len(s.Wrap)], s.Program)
	if s.Sentinel != "" {
		args = append(args, s.Sentinel, "--sentinel")
	}
	args = append(append(args, "--port", strconv.Itoa(s.Port), "--bind"), s.Bind...)
	args = append(args, "--dir", s.Dir, "--unixsocket", s.socket(), "--protected-mode", "no", "--daemonize", "no", "--logfile", s.log())
	if s.Sentinel == "" {
		args = append(args, "--save", "", "--appendonly", "no")
	}
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
	return s.await(ready)
}

// answers reports whether a reply to PING is that of a server which serves. One
// that wants a password serves, too.
func answers(reply string, err error) bool {
	return err == nil && reply == "PONG" || err != nil && strings.HasPrefix(err.Error(), "NOAUTH")
}

// listens reports whether there was a reply at all.
func listens(reply string, err error) bool {
	return answers(reply, err) || err != nil && strings.HasPrefix(err.Error(), "LOADING")
}

// await waits until the server is ready. It asks by the server's own socket:
// what answers there is no other process.
func (s *Server) await(ready func(reply string, err error) bool) error {
	for end := time.Now().Add(startLimit); time.Now().Before(end); {
		if ready(s.ask("PING")) {
			return nil
		}
		select {
		case <-s.gone:
			s.cmd = nil
			words := s.lastWords()
			if text, _ := os.ReadFile(s.log()); strings.Contains(string(text), "Address already in use") {
				return fmt.Errorf("%w: %d: %s", errPortTaken, s.Port, words)
			}
			return fmt.Errorf("the server on port %d ended by itself: %s", s.Port, words)
		case <-time.After(5 * time.Millisecond): // nothing tells us when it listens
		}
	}
	return fmt.Errorf("the server on port %d does not answer: %s", s.Port, s.lastWords())
}

var errPortTaken = errors.New("another process has the port")

// FreePort returns a loopback port that nobody listens on, and that was not
// returned before: nobody may be listening on that one yet.
func FreePort() (int, error) {
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, fmt.Errorf("there is no free port: %w", err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		l.Close()
		if _, twice := given.LoadOrStore(port, true); !twice {
			return port, nil
		}
	}
}

var given sync.Map

// choosePort is replaced by a test.
var choosePort = FreePort

// lastWords is the last line of the server's log.
func (s *Server) lastWords() string {
	text, err := os.ReadFile(s.log())
	if err != nil {
		return "it left no log"
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}

// socket is where the server can be asked whatever becomes of its network. The
// path is short, for it is bounded.
func (s *Server) socket() string { return filepath.Join(s.Dir, "s") }

func (s *Server) log() string { return filepath.Join(s.Dir, "log") }

// Ask sends a command, by a way that no fault of the network touches.
func (s *Server) Ask(args ...string) (string, error) { return s.ask(args...) }

func (s *Server) ask(args ...string) (string, error) {
	return Ask("unix", s.socket(), askLimit, args...)
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
