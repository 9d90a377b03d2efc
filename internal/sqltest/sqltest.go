//go:build unix

// Package sqltest runs real database servers for tests: MariaDB, PostgreSQL,
// and PgBouncer before it, each started when a test first asks for it, on a free loopback
// port and in a folder of its own, and ended with the test binary.
//
// A test binary that uses it calls Main from its TestMain. A test fails if the
// binaries of its server are missing: a skipped test would look like a passed
// one.
package sqltest

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Main runs the tests, ends the servers that they started, and returns the
// exit code.
func Main(m *testing.M) int {
	defer stopAll()
	return m.Run()
}

// server is one database server, started at most once.
type server struct {
	name  string // as messages call it
	setUp func(s *server) error
	once  sync.Once
	err   error

	dir    string
	behind string // the port of the server behind it, for a pooler
	port   string
	run    []string // the command line
	ready  string   // the text in its log when it accepts connections
	end    string   // the signal that ends it at once
	cred   *syscall.Credential

	cmd    *exec.Cmd
	parent *os.File // open as long as the server is to run
}

var servers = []*server{mariaDB, pgBouncer, postgreSQL}

// address starts the server if it does not run yet, and returns its port.
func (s *server) address(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skipf("it needs %s, and -short starts no servers", s.name)
	}
	s.once.Do(func() { s.err = s.start() })
	if s.err != nil {
		t.Fatalf("%s: %v", s.name, s.err)
	}
	return s.port
}

// watch is run by a shell between us and the server. It ends the server when
// our end of its standard input is closed: by stop, or by our own death of any
// cause.
const watch = `signal=$1; shift; "$@" & read -r _; kill -s "$signal" $!; wait $!`

func (s *server) start() error {
	var err error
	// The name is short, since the length of a socket's path is limited.
	if s.dir, err = os.MkdirTemp("", "sqltest"); err != nil {
		return err
	}
	s.port = laterPort
	if err := s.setUp(s); err != nil {
		return err
	}
	s.port = ""
	// Another process may take the free port first.
	for tries := 1; ; tries++ {
		err := s.startOn()
		if err == nil || tries == 5 || !errors.Is(err, errPortTaken) {
			return err
		}
		s.parent.Close()
		s.cmd.Wait()
		s.port = ""
	}
}

// laterPort is a placeholder for the port in a command line. The port is chosen
// when the server has been set up: that takes seconds.
const laterPort = "PORT"

var errPortTaken = errors.New("the port was taken meanwhile")

// startOn starts the server on the port that it had, or on a free one.
func (s *server) startOn() error {
	if s.port == "" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		_, s.port, _ = net.SplitHostPort(l.Addr().String())
		l.Close()
	}
	run := slices.Clone(s.run)
	for i := range run {
		if run[i] == laterPort || strings.HasSuffix(run[i], "="+laterPort) {
			run[i] = strings.TrimSuffix(run[i], laterPort) + s.port
		}
	}
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	theirs, ours, err := os.Pipe()
	if err != nil {
		return err
	}
	defer theirs.Close()
	s.parent = ours
	s.cmd = exec.Command("sh", append([]string{"-c", watch, "watch", s.end}, run...)...)
	s.cmd.Dir, s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = s.dir, theirs, log, log
	// A group of its own: a Ctrl-C at the terminal reaches the tests, which
	// then end the server themselves.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred, Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		s.cmd = nil
		return err
	}
	return s.await()
}

// await waits until the server's log says that it accepts connections. An open
// port is not enough: PostgreSQL listens before it is ready, and refuses
// clients.
func (s *server) await() error {
	var text []byte
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); {
		text, _ = os.ReadFile(filepath.Join(s.dir, "log"))
		if bytes.Contains(text, []byte(s.ready)) {
			return nil
		}
		if bytes.Contains(text, []byte("Address already in use")) {
			return fmt.Errorf("%w: port %s", errPortTaken, s.port)
		}
		time.Sleep(10 * time.Millisecond) // there is no event for a line in a log
	}
	return fmt.Errorf("is not ready on port %s; its log:\n%s", s.port, text)
}

func stopAll() {
	for _, s := range servers {
		s.stop()
	}
	if empty != "" {
		os.RemoveAll(filepath.Dir(empty))
	}
}

// stop ends the server and removes its folder.
func (s *server) stop() {
	if s.cmd != nil {
		s.parent.Close()
		s.cmd.Wait()
	}
	if s.dir != "" {
		os.RemoveAll(s.dir)
	}
}

// command runs a program to its end, as the server's user.
func (s *server) command(path string, args ...string) error {
	cmd := exec.Command(path, args...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", path, err, out)
	}
	return nil
}

// giveUpRoot makes the server run as another user if the tests run as root:
// these servers refuse to run as root.
func (s *server) giveUpRoot(names ...string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, name := range append(names, "nobody") {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		if err1 != nil || err2 != nil {
			continue
		}
		s.cred = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		return os.Chown(s.dir, uid, gid)
	}
	return fmt.Errorf("the tests run as root, which the server refuses, and there is no user %s or nobody", strings.Join(names, ", "))
}

// find returns the first program that exists, by name or by a pattern of paths.
func find(candidates ...string) string {
	for _, c := range candidates {
		if path, err := exec.LookPath(c); err == nil {
			return path
		}
		if found, _ := filepath.Glob(c); len(found) > 0 {
			return found[len(found)-1]
		}
	}
	return ""
}
