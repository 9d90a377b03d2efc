//go:build unix

package servertest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redlatch/redlatch/internal/redisproc"
)

// Database is a database server, or the place for one: it may be down. It is not
// for several goroutines at once.
type Database struct {
	Name string // as messages call it

	// DSN returns the address of a database on the server, in the form of its
	// driver for package database/sql. address is the server's, or that of a
	// proxy before it.
	DSN func(address string) string

	scheme, database string // of a URL, before and after the address
	setUp            func(s *Database) error
	flags            []string // for a replica, too

	dir   string
	port  string
	run   []string // the command line
	ready string   // the text in its log when it accepts connections
	end   string   // the signal that ends it at once
	cred  *syscall.Credential

	cmd    *exec.Cmd // nil if the server is down
	parent *os.File  // open as long as the server is to run
}

// Addr returns host and port.
func (s *Database) Addr() string { return "127.0.0.1:" + s.port }

// URL returns the address of a database on the server, as a redlatch node has
// it. address is the server's, or that of a proxy before it.
func (s *Database) URL(address string) string { return s.scheme + address + s.database }

var errDown = errors.New("the server is down")

// watch is run by a shell between us and the server. It ends the server when
// our end of its standard input is closed: by stop, or by our own death of any
// cause.
const watch = `signal=$1; shift; "$@" & read -r _; kill -s "$signal" $!; kill -s CONT $!; wait $!`

// Start starts the server, and waits until it accepts connections. The first time
// it creates its data; later the server has its data and its port again.
func (s *Database) Start() error {
	if s.dir != "" {
		err := s.startOn()
		if err != nil {
			s.Kill()
		}
		return err
	}
	var err error
	// The name is short, since the length of a socket's path is limited.
	if s.dir, err = os.MkdirTemp("", "database"); err != nil {
		return err
	}
	if err := s.setUp(s); err != nil {
		return err
	}
	// Another process may take the free port first.
	for tries := 1; ; tries++ {
		err := s.startOn()
		if err == nil {
			return nil
		}
		s.Kill()
		if tries == 5 || !errors.Is(err, errPortTaken) {
			return err
		}
		s.port = ""
	}
}

// laterPort is a placeholder for the port in a command line. The port is chosen
// when the server has been set up: that takes seconds.
const laterPort = "PORT"

var errPortTaken = errors.New("the port was taken meanwhile")

// startOn starts the server on the port that it had, or on a free one.
func (s *Database) startOn() error {
	if s.port == "" {
		port, err := redisproc.FreePort()
		if err != nil {
			return err
		}
		s.port = strconv.Itoa(port)
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
func (s *Database) await() error {
	var text []byte
	for n := 1; n <= 6000; n++ { // a minute
		if n%100 == 0 {
			if pids, err := s.Pids(); err == nil && len(pids) == 0 {
				return fmt.Errorf("it has ended; its log:\n%s", text)
			}
		}
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

// Stop ends the server and removes its folder.
func (s *Database) Stop() {
	if s.cmd != nil {
		s.Thaw()
		s.parent.Close()
		s.cmd.Wait()
		s.cmd = nil
	}
	if s.dir != "" {
		os.RemoveAll(s.dir)
	}
}

// command runs a program to its end, as the server's user.
func (s *Database) command(path string, args ...string) error {
	cmd := exec.Command(path, args...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", path, err, out)
	}
	return nil
}

// giveUpRoot makes the server run as another user if we are root:
// these servers refuse to run as root.
func (s *Database) giveUpRoot(names ...string) error {
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
	return fmt.Errorf("the server refuses to run as root, and there is no user %s or nobody", strings.Join(names, ", "))
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
