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
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redlatch/redlatch/internal/childproc"
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

	// Config, if it is not nil, changes the configuration of a member of ZooKeeper
	// before the member is started.
	Config func(text string) string

	// Env is the environment of the server besides our own.
	Env []string

	scheme, database string // of a URL, before and after the address
	setUp            func(s *Database) error
	flags            []string // for a replica, too

	dir   string
	port  int
	run   func() []string // the command line
	ready string          // the text in its log when it accepts connections
	end   os.Signal       // the signal that ends it at once
	cred  *syscall.Credential

	proc *os.Process   // nil if the server is down
	gone chan struct{} // closed when the process has ended
}

// Addr returns host and port.
func (s *Database) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// Hosts returns host and port of each server, or proxy.
func Hosts[S interface{ Addr() string }](servers []S) []string {
	hosts := make([]string, len(servers))
	for i, s := range servers {
		hosts[i] = s.Addr()
	}
	return hosts
}

// Together does something to some servers, or whatever else, at once, such as
// (*Database).Start to the members of a cluster.
func Together[S any](servers []S, do func(S) error) error {
	errs := make([]error, len(servers))
	var all sync.WaitGroup
	for i, s := range servers {
		all.Go(func() { errs[i] = do(s) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// URL returns the address of a database on the server, as a redlatch node has
// it. address is the server's, or that of a proxy before it.
func (s *Database) URL(address string) string { return s.scheme + address + s.database }

var errDown = errors.New("the server is down")

// Start starts the server, and waits until it accepts connections. The first time
// it creates its data; later the server has its data and its port again.
func (s *Database) Start() (err error) {
	if s.dir == "" {
		// The name is short, since the length of a socket's path is limited.
		if s.dir, err = os.MkdirTemp("", "database"); err != nil {
			return err
		}
		if err := s.setUp(s); err != nil {
			return err
		}
	}
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		err = redisproc.OnFreePort(&s.port, s.launch)
		if !errors.Is(err, errEnding) || time.Since(begun) > time.Minute {
			return err
		}
	}
}

// errEnding says that processes which Kill has killed have not ended yet.
var errEnding = errors.New("its former processes have not ended")

// launch starts the process, and waits until its log says that it accepts
// connections. An open port is not enough: PostgreSQL listens before it is ready,
// and refuses clients.
func (s *Database) launch() error {
	path := filepath.Join(s.dir, "log")
	log, err := os.Create(path)
	if err != nil {
		return err
	}
	defer log.Close()
	run := s.run()
	cmd := exec.Command(run[0], run[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = s.dir, log, log, childproc.Apart()
	cmd.SysProcAttr.Credential, cmd.Env = s.cred, append(os.Environ(), s.Env...)
	wait, err := childproc.Start(cmd)
	if err != nil {
		return err
	}
	gone := make(chan struct{})
	go func() {
		wait()
		close(gone)
	}()
	s.proc, s.gone = cmd.Process, gone
	for end := time.Now().Add(time.Minute); ; {
		ended := false
		select {
		case <-gone:
			ended = true
		case <-time.After(10 * time.Millisecond): // there is no event for a line in a log
		}
		text, _ := os.ReadFile(path)
		switch {
		case bytes.Contains(text, []byte(s.ready)):
			return nil
		case bytes.Contains(text, []byte("Address already in use")):
			err = fmt.Errorf("%w: %d", redisproc.ErrPortTaken, s.port)
		case ended && bytes.Contains(text, []byte("pre-existing shared memory block")):
			err = errEnding
		case ended:
			err = fmt.Errorf("it has ended; its log:\n%s", text)
		case time.Now().After(end):
			err = fmt.Errorf("is not ready on port %d; its log:\n%s", s.port, text)
		default:
			continue
		}
		s.Kill()
		return err
	}
}

// Stop ends the server and removes its folder.
func (s *Database) Stop() {
	if s.proc != nil {
		s.Thaw()
		s.proc.Signal(s.end)
		<-s.gone
		s.proc = nil
	}
	os.RemoveAll(s.dir)
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
