//go:build unix

// Package redistest runs real redis-server processes for tests: each on a free
// loopback port, in a folder of its own, ended with the test that started it.
package redistest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/redisproc"
)

// Server is a redis-server process.
type Server struct {
	t    testing.TB
	port int
	dir  string
	file string // a configuration file, for a sentinel
	args []string
	env  []string // besides the test's own
	cmd  *exec.Cmd
	log  *os.File

	cleanup bool // stop is called when the test ends
	settled bool // it has answered, and keeps its port from now on
}

// Start starts n servers and waits until each answers. Settings are given as
// on the command line: "--maxmemory", "10mb".
func Start(t testing.TB, n int, settings ...string) []*Server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Fatalf("these tests need redis-server: install it with the system's package manager (apt-get install redis-server) or run make test, which does")
	}
	servers := make([]*Server, n)
	for i := range servers {
		servers[i] = &Server{t: t, dir: t.TempDir(), args: settings}
		servers[i].start()
	}
	for _, s := range servers {
		s.await()
		// Another process may have been faster in taking the port; then it is
		// that one which answered.
		for tries := 0; tries < 5 && !s.isOurs(); tries++ {
			s.stop()
			s.port = 0
			s.start()
			s.await()
		}
	}
	return servers
}

// isOurs reports whether the server that answers is the one we started.
func (s *Server) isOurs() bool {
	info, err := s.Try("INFO", "server")
	if err != nil {
		return strings.HasPrefix(err.Error(), "NOAUTH") || strings.HasPrefix(err.Error(), "LOADING")
	}
	return strings.Contains(info, fmt.Sprintf("process_id:%d\r\n", s.cmd.Process.Pid))
}

// StartSentinel starts a sentinel with a configuration file, which it will
// write to.
func StartSentinel(t testing.TB, config string) *Server {
	t.Helper()
	s := &Server{t: t, dir: t.TempDir(), file: config}
	s.start()
	s.await()
	return s
}

// FreePort returns a loopback port that nobody listens on.
func FreePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	if _, twice := given.LoadOrStore(port, true); twice {
		return FreePort(t)
	}
	return port
}

// given are the ports that were handed out: one that nobody listens on yet must
// not be handed out again.
var given sync.Map

// Addresses returns the redis:// addresses of servers.
func Addresses(servers []*Server) []string {
	addresses := make([]string, len(servers))
	for i, s := range servers {
		addresses[i] = s.URL()
	}
	return addresses
}

// start starts the process, on a free port the first time and on the same one
// after that.
func (s *Server) start() {
	s.t.Helper()
	if s.port == 0 {
		s.port, _ = strconv.Atoi(FreePort(s.t))
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	args := []string{"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no"}
	if s.file != "" {
		args = []string{s.file, "--sentinel", "--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir}
	}
	s.cmd = exec.Command("redis-server", append(args, s.args...)...)
	s.cmd.Env = append(os.Environ(), s.env...)
	s.cmd.Stdout, s.cmd.Stderr, s.log = log, log, log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	if !s.cleanup {
		s.cleanup = true
		s.t.Cleanup(s.stop)
	}
}

// await waits until the server answers a PING.
func (s *Server) await() {
	s.t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		if reply, err := s.Try("PING"); err == nil && reply == "PONG" || err != nil && strings.HasPrefix(err.Error(), "NOAUTH") {
			s.settled = true
			return
		}
		if !s.settled && s.file == "" && s.portTaken() {
			s.stop()
			s.port = 0
			s.start()
		}
		time.Sleep(5 * time.Millisecond) // nothing tells us when it listens
	}
	text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	s.t.Fatalf("redis-server on port %d does not answer; its log:\n%s", s.port, text)
}

// portTaken reports whether the server found its port in use, or the one of a
// cluster's bus, which is 10,000 above it; and forgets that it said so.
func (s *Server) portTaken() bool {
	file := filepath.Join(s.dir, "log")
	text, _ := os.ReadFile(file)
	return bytes.Contains(text, []byte("Address already in use")) && os.Truncate(file, 0) == nil
}

func (s *Server) stop() {
	if s.cmd == nil {
		return
	}
	s.cmd.Process.Signal(syscall.SIGCONT)
	s.cmd.Process.Kill()
	s.cmd.Wait()
	s.log.Close()
	s.cmd = nil
}

// Addr returns host:port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// URL returns the redis:// address.
func (s *Server) URL() string { return "redis://" + s.Addr() }

// Dir returns the server's folder.
func (s *Server) Dir() string { return s.dir }

// Freeze stops the process where it is: connections stay open, and nothing is
// answered.
func (s *Server) Freeze() { s.signal(syscall.SIGSTOP) }

// Thaw lets a frozen process go on.
func (s *Server) Thaw() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// Kill ends the process at once, as kill -9 does.
func (s *Server) Kill() {
	s.t.Helper()
	s.stop()
}

// Restart starts the process again after Kill, on the same port and folder,
// and waits until it answers.
func (s *Server) Restart(settings ...string) {
	s.t.Helper()
	s.RestartNow(settings...)
	s.await()
}

// RestartNow is like Restart, and waits only until the server listens: it may
// be loading its data.
func (s *Server) RestartNow(settings ...string) {
	s.t.Helper()
	if len(settings) > 0 {
		s.args = settings
	}
	s.start()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		if c, err := net.DialTimeout("tcp", s.Addr(), time.Second); err == nil {
			c.Close()
			return
		}
		time.Sleep(5 * time.Millisecond) // nothing tells us when it listens
	}
	s.t.Fatalf("redis-server on port %d does not listen", s.port)
}

// Do sends a command over a connection of its own and returns the reply as
// text: nil is "", an array is its elements, one to a line.
func (s *Server) Do(args ...string) string {
	s.t.Helper()
	reply, err := s.Try(args...)
	if err != nil {
		s.t.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	return reply
}

// Try is like Do, and returns the error.
func (s *Server) Try(args ...string) (string, error) {
	return redisproc.Ask("tcp", s.Addr(), 10*time.Second, args...)
}

// Keys returns the keys on the server that are locks, in order: all but those
// that redlatch keeps beside them.
func (s *Server) Keys() []string {
	s.t.Helper()
	var keys []string
	for key := range strings.SplitSeq(s.Do("KEYS", "*"), "\n") {
		if key != "" && !strings.HasPrefix(key, "redlatch:1:") {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
