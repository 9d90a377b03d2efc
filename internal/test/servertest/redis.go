//go:build unix

package servertest

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/redisproc"
	"github.com/redlatch/redlatch/internal/test/check"
)

// Server is a redis-server process.
type Server struct {
	t    testing.TB
	proc *redisproc.Server
}

// Redis starts n servers and waits until each answers. Settings are given as
// on the command line: "--maxmemory", "10mb".
func Redis(t testing.TB, n int, settings ...string) []*Server {
	t.Helper()
	servers, procs := make([]*Server, n), make([]*redisproc.Server, n)
	for i := range servers {
		procs[i] = &redisproc.Server{Settings: settings}
		servers[i] = newServer(t, procs[i])
	}
	check.Must(t, redisproc.StartAll(context.Background(), procs...))
	return servers
}

// Start starts a server that differs from others in the given fields.
func Start(t testing.TB, proc *redisproc.Server) *Server {
	t.Helper()
	s := newServer(t, proc)
	check.Must(s.t, proc.Start())
	return s
}

// newServer returns a server that differs from others in the given fields, and
// that ends with the test.
func newServer(t testing.TB, proc *redisproc.Server) *Server {
	t.Helper()
	proc.Program = cmp.Or(proc.Program, Need(t))
	var err error
	// Not the test's own folder: its name is long, and a socket's path bounded.
	proc.Dir, err = os.MkdirTemp("", "redis")
	check.Must(t, err)
	t.Cleanup(func() {
		proc.Kill()
		os.RemoveAll(proc.Dir)
	})
	return &Server{t, proc}
}

// Need returns the program of a server, for a test that starts some by other
// means. Without it the test fails: what cannot be tested was not tested.
func Need(t testing.TB) string {
	t.Helper()
	if testing.Testing() && testing.Short() {
		t.Skip("it needs redis-server, and -short starts no servers")
	}
	path, err := redisproc.ForTests()
	if err != nil && os.Getenv(redisproc.Variable) != "" {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal("this test needs redis-server: install it with the system's package manager (apt-get install redis-server) or run make test, which does")
	}
	return path
}

// Since skips a test on servers before a version of Redis, where something else
// than redlatch is different there: reason says what.
func Since(t testing.TB, major int, reason string) {
	t.Helper()
	if before(t, major) {
		t.Skipf("not on this server, which is before Redis %d.0: %s", major, reason)
	}
}

// WithDebug returns the settings of a server that takes the command DEBUG.
func WithDebug(t testing.TB) []string {
	t.Helper()
	if before(t, 7) {
		return nil // it always does
	}
	return []string{"--enable-debug-command", "yes"}
}

// before reports whether servers are of a version of Redis before a major one.
func before(t testing.TB, major int) bool {
	t.Helper()
	program := Need(t)
	out, err := exec.Command(program, "--version").Output()
	if err != nil {
		t.Fatalf("%s --version: %v", program, err)
	}
	// Valkey began with 7.2.
	_, version, _ := strings.Cut(string(out), " v=")
	first, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(first)
	if err != nil {
		t.Fatalf("%s --version has no version: %q", program, out)
	}
	return n < major
}

// FreePort returns a loopback port that nobody listens on.
func FreePort(t testing.TB) string {
	t.Helper()
	port, err := redisproc.FreePort()
	check.Must(t, err)
	return strconv.Itoa(port)
}

// Addresses returns the redis:// addresses of servers.
func Addresses(servers []*Server) []string {
	addresses := make([]string, len(servers))
	for i, s := range servers {
		addresses[i] = s.URL()
	}
	return addresses
}

// Addr returns host:port.
func (s *Server) Addr() string { return s.proc.Addr() }

// URL returns the redis:// address.
func (s *Server) URL() string { return s.proc.URL() }

// Dir returns the server's folder.
func (s *Server) Dir() string { return s.proc.Dir }

// Freeze stops the process where it is: connections stay open, and nothing is
// answered.
func (s *Server) Freeze() { check.Must(s.t, s.proc.Freeze()) }

// Thaw lets a frozen process go on.
func (s *Server) Thaw() { check.Must(s.t, s.proc.Thaw()) }

// Kill ends the process at once, as kill -9 does.
func (s *Server) Kill() { s.proc.Kill() }

// Restart starts the process again after Kill, on the same port and folder,
// and waits until it answers.
func (s *Server) Restart(settings ...string) { check.Must(s.t, s.proc.Start(settings...)) }

// RestartNow is like Restart, and waits only until the server listens: it may
// be loading its data.
func (s *Server) RestartNow(settings ...string) { check.Must(s.t, s.proc.Listen(settings...)) }

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
func (s *Server) Try(args ...string) (string, error) { return s.proc.Ask(args...) }

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
