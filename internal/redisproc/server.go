// Package redisproc runs redis-server processes for tests and tools: it starts,
// freezes, kills and restarts them, and asks them things. It returns errors and
// knows nothing of package testing; servertest is the layer for tests.
package redisproc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/childproc"
	"github.com/redlatch/redlatch/internal/resp"
)

// Server is a redis-server process, or the place for one: it may be down. It
// writes nothing to disk unless Settings say so.
type Server struct {
	Program  string   // defaults to redis-server
	Port     int      // defaults to a free one, chosen at the first start
	Dir      string   // its folder, which is made
	Sentinel string   // a sentinel's configuration file; empty for a server
	Settings []string // as on the command line: "--maxmemory", "10mb"
	Env      []string // besides our own

	mu   sync.Mutex // guards what follows
	proc *process   // nil if the server is down
}

// process is one run of the program.
type process struct {
	*os.Process
	gone chan struct{} // closed when it has ended
	err  error         // how it ended; set before gone is closed
}

// startLimit is how long a server may take until it answers.
const startLimit = 3 * time.Minute

// askLimit is how long an answer may take.
const askLimit = time.Minute

// StartAll starts servers at once and waits until each answers. On an error some
// of them may run.
func StartAll(ctx context.Context, servers ...*Server) error {
	errs := make([]error, len(servers))
	var all sync.WaitGroup
	for i, s := range servers {
		all.Go(func() { errs[i] = s.start(ctx, answers, nil) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Start starts the process, if it does not run, and waits until it answers.
// Settings, if given, replace those it had.
func (s *Server) Start(settings ...string) error {
	return s.start(context.Background(), answers, settings)
}

// Listen is like Start, and waits only until the server takes connections: it
// may be loading its data.
func (s *Server) Listen(settings ...string) error {
	return s.start(context.Background(), listens, settings)
}

// ready reports by a reply to PING whether a server is ready.
type ready func(reply string, err error) bool

func (s *Server) start(ctx context.Context, ready ready, settings []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil {
		return nil
	}
	if settings != nil {
		s.Settings = settings
	}
	return OnFreePort(&s.Port, func() error { return s.launch(ctx, ready) })
}

// launch starts the process and waits until it is ready.
func (s *Server) launch(ctx context.Context, ready ready) error {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	os.Remove(s.log())
	args := s.commandLine()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), s.Env...)
	cmd.SysProcAttr = childproc.Apart()
	wait, err := childproc.Start(cmd)
	if err != nil {
		return fmt.Errorf("%s cannot be started: %w", args[0], err)
	}
	p := &process{Process: cmd.Process, gone: make(chan struct{})}
	go func() {
		p.err = wait()
		close(p.gone)
	}()
	s.proc = p
	return s.await(ctx, ready)
}

func (s *Server) commandLine() []string {
	args := []string{cmp.Or(s.Program, "redis-server")}
	if s.Sentinel != "" {
		args = append(args, s.Sentinel, "--sentinel")
	}
	args = append(args, "--port", strconv.Itoa(s.Port), "--bind", "127.0.0.1", "--dir", s.Dir, "--protected-mode", "no", "--daemonize", "no", "--logfile", s.log())
	if network, socket := s.way(); network == "unix" {
		os.Remove(socket) // of a process that was killed
		args = append(args, "--unixsocket", socket)
	}
	if s.Sentinel == "" {
		args = append(args, "--save", "", "--appendonly", "no")
	}
	return append(args, s.Settings...)
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

// await waits until the server is ready.
func (s *Server) await(ctx context.Context, ready ready) error {
	for end := time.Now().Add(startLimit); time.Now().Before(end); {
		if ready(s.Ask("PING")) {
			return nil
		}
		select {
		case <-s.proc.gone:
			ended := s.end(s.proc)
			s.proc = nil
			if text, _ := os.ReadFile(s.log()); strings.Contains(string(text), "Address already in use") {
				return fmt.Errorf("%w: %d: %s", ErrPortTaken, s.Port, s.lastWords())
			}
			return ended
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond): // no event says when it listens
		}
	}
	return fmt.Errorf("the server on port %d does not answer: %s", s.Port, s.lastWords())
}

// end is the error for a process that has ended.
func (s *Server) end(p *process) error {
	return fmt.Errorf("the server on port %d ended by itself (%v): %s", s.Port, p.err, s.lastWords())
}

// ErrPortTaken is what a start returns that OnFreePort repeats.
var ErrPortTaken = errors.New("another process has the port")

// OnFreePort starts a server on its port, or on a free one if it has none: between
// the choice of a free port and its use another process may take it.
func OnFreePort(port *int, start func() error) (err error) {
	if *port != 0 {
		return start()
	}
	for range 5 {
		if *port, err = choosePort(); err != nil {
			return err
		}
		if err = start(); !errors.Is(err, ErrPortTaken) {
			break
		}
	}
	return err
}

// FreePort returns a loopback port that nobody listens on, and that was not
// returned before: nobody may be listening on that one yet. It is from a block that
// is this process's until it ends, and below those that the system gives to
// connections. So a server that is down can come back, and nobody else is taken for it.
func FreePort() (port int, err error) {
	ports.Lock()
	defer ports.Unlock()
	for range 1000 {
		if ports.next == ports.end {
			first := lowest + rand.IntN((highest-lowest)/blockSize)*blockSize
			block, failed := listenOn(first)
			if err = failed; err == nil {
				ports.held = append(ports.held, block)
				ports.next, ports.end = first+1, first+blockSize
			}
			continue
		}
		port = ports.next
		ports.next++
		l, failed := listenOn(port)
		if err = failed; err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("there is no free port from %d to %d: %w", lowest, highest, err)
}

func listenOn(port int) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

// The ports to choose from. On Linux those of connections begin at 32768.
const lowest, highest = 10000, 32768

// blockSize is how many ports a process takes at once. The first is for a listener
// that says so.
const blockSize = 64

var ports struct {
	sync.Mutex
	held      []net.Listener
	next, end int
}

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

// way is how the server is asked: by a socket of its own, where the system has
// such, so that no fault of the network is in the way and no other process can
// answer. The path is short: its length is bounded.
func (s *Server) way() (network, address string) {
	if runtime.GOOS == "windows" {
		return "tcp", s.Addr()
	}
	return "unix", filepath.Join(s.Dir, "s")
}

func (s *Server) log() string { return filepath.Join(s.Dir, "log") }

// Addr returns the loopback address, as host:port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)) }

// URL returns the loopback address as redis://host:port.
func (s *Server) URL() string { return "redis://" + s.Addr() }

// Ask sends a command and returns the reply as text: see resp.Ask.
func (s *Server) Ask(args ...string) (string, error) {
	network, address := s.way()
	return resp.Ask(network, address, askLimit, args...)
}

// errDown is returned for what only a running server can do.
var errDown = errors.New("the server is down")

// Signal sends the process a signal.
func (s *Server) Signal(sig os.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return errDown
	}
	return s.proc.Signal(sig)
}

// Kill ends the process at once, as kill -9 does, and waits until it has.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return
	}
	s.proc.Kill() // also one that is frozen
	<-s.proc.gone
	s.proc = nil
}

// Wait returns when the process has ended, by itself or by a signal, and how. It
// returns at once if the server is down.
func (s *Server) Wait() error {
	s.mu.Lock()
	p := s.proc
	s.mu.Unlock()
	if p == nil {
		return errDown
	}
	<-p.gone
	return s.end(p)
}

// Pid returns the process's id, or 0 if the server is down.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return 0
	}
	return s.proc.Pid
}
