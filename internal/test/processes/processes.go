//go:build unix

// Package processes runs a program several times at once, as separate processes,
// for tests of how the processes affect each other. The test binary itself is
// the program, so nothing else is built. It needs no database, so that the tests
// of modules beside this one depend on none.
package processes

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
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

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/fresh"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/registry"
	"github.com/redlatch/redlatch/store/redis/direct"
)

// variable is set for a test binary that is to be the program.
const variable = "REDLATCH_TEST_MAIN"

// Main is for TestMain: it runs the tests, as servertest.Main does, or main in a
// process that Start has started.
func Main(m *testing.M, main func()) {
	if os.Getenv(variable) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(servertest.Main(m))
}

// Client returns a client of the servers, which has patience with them on a busy
// machine, and is closed when the test ends.
func Client(t testing.TB, servers []*servertest.Server) *redlatch.Client {
	t.Helper()
	locks, err := redlatch.Open(strings.Join(servertest.Addresses(servers), ","), &redlatch.Options{NodeTimeout: 10 * time.Second})
	check.Must(t, err)
	t.Cleanup(func() { locks.Close() })
	return locks
}

// Servers starts n Redis servers that are declared new, and returns a Client of
// them.
func Servers(t testing.TB, n int) ([]*servertest.Server, *redlatch.Client) {
	t.Helper()
	servers := servertest.Redis(t, n)
	locks := Client(t, servers)
	check.Must(t, fresh.Declare(context.Background(), locks))
	return servers, locks
}

// Quorum starts n Redis servers that are declared new, and returns an
// environment in which locks are on them.
func Quorum(t testing.TB, n int) ([]*servertest.Server, []string) {
	t.Helper()
	servers, locks := Servers(t, n)
	locks.Close()
	return servers, []string{"REDLATCH_NODES=" + strings.Join(servertest.Addresses(servers), ",")}
}

// File returns an environment in which locks are in a file of the test's own.
func File(t testing.TB) []string {
	return []string{"REDLATCH_NODES=", "REDLATCH_STATE_DIR=" + t.TempDir()}
}

// Waiting waits until so many callers wait for a lock on a node of the
// environment, and returns that node's listing of it. The caller imports the
// store of the file.
func Waiting(t testing.TB, env []string, name string, count int) (look node.Listing) {
	t.Helper()
	var nodes []node.Node
	for _, v := range env {
		var err error
		switch key, value, _ := strings.Cut(v, "="); {
		case value == "":
		case key == "REDLATCH_NODES":
			nodes, err = direct.Nodes(strings.Split(value, ",")...)
		case key == "REDLATCH_STATE_DIR":
			var n node.Node
			n, err = registry.Open("sqlite:" + filepath.Join(value, "redlatch", "locks.db"))
			nodes = []node.Node{n}
		}
		check.Must(t, err)
	}
	for _, n := range nodes {
		defer n.Close()
	}
	poll.Until(t, fmt.Sprintf("%d wait for %q on a node", count, name), func() bool {
		return slices.ContainsFunc(nodes, func(n node.Node) (is bool) {
			var err error
			look, err = n.(node.Lister).Look(t.Context(), name)
			return err == nil && look.Waiting == count
		})
	})
	return look
}

// Process is a program that was started.
type Process struct {
	t    testing.TB
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	done chan struct{}

	mu    sync.Mutex
	lines []string // its output, on stdout and stderr
	read  int      // how many of them Line has read
}

// Start starts the program under a name for the test's own log. It is killed
// when the test ends.
func Start(t testing.TB, name string, env []string, args ...string) *Process {
	t.Helper()
	self, err := os.Executable()
	check.Must(t, err)
	p := &Process{t: t, name: name, cmd: exec.Command(self, args...), done: make(chan struct{})}
	// The race detector makes a process that succeeds sleep for a second.
	p.cmd.Env = append(append(os.Environ(), variable+"=1", "GORACE=atexit_sleep_ms=0"), env...)
	p.cmd.Dir = t.TempDir()
	p.cmd.Args[0] = filepath.Base(name)
	p.in, err = p.cmd.StdinPipe()
	check.Must(t, err)
	out, w, err := os.Pipe()
	check.Must(t, err)
	p.cmd.Stdout, p.cmd.Stderr = w, w
	check.Must(t, p.cmd.Start())
	w.Close()
	go p.listen(out)
	t.Cleanup(p.Kill)
	return p
}

func (p *Process) listen(out io.ReadCloser) {
	defer out.Close()
	for s := bufio.NewScanner(out); s.Scan(); {
		p.mu.Lock()
		p.lines = append(p.lines, s.Text())
		p.mu.Unlock()
	}
	p.cmd.Wait()
	close(p.done)
}

// Line waits until the process prints a line that contains one of the texts,
// and returns it. Earlier lines are skipped.
func (p *Process) Line(texts ...string) (line string) {
	p.t.Helper()
	found := false
	poll.Holds(poll.Patience, func() bool {
		ended := p.ended()
		p.mu.Lock()
		defer p.mu.Unlock()
		for !found && p.read < len(p.lines) {
			line = p.lines[p.read]
			p.read++
			found = slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(line, text) })
		}
		return found || ended
	})
	if !found {
		p.t.Fatalf("%s has not said one of %q; it said:\n%s", p.name, texts, p.Said())
	}
	return line
}

func (p *Process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Type writes a line to the process's stdin.
func (p *Process) Type(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.t.Fatalf("%s cannot be sent %q: %v", p.name, line, err)
	}
}

// Signal sends a signal to the process.
func (p *Process) Signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("%s: %v", p.name, err)
	}
}

// Kill kills the process as kill -9 does, and waits for it. It does nothing if
// the process has ended.
func (p *Process) Kill() {
	p.cmd.Process.Kill()
	<-p.done
}

// Wait waits until the process ends by itself, and returns its exit code.
func (p *Process) Wait() int {
	p.t.Helper()
	if !poll.Holds(poll.Patience, p.ended) {
		p.t.Fatalf("%s has not ended within %v; it said:\n%s", p.name, poll.Patience, p.Said())
	}
	return p.cmd.ProcessState.ExitCode()
}

// Ends waits until the process ends by itself, and checks its exit code.
func (p *Process) Ends(want int) {
	p.t.Helper()
	if code := p.Wait(); code != want {
		p.t.Errorf("%s exits with %d, want %d; it said:\n%s", p.name, code, want, p.Said())
	}
}

// Said returns all output of the process.
func (p *Process) Said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

// Alive reports whether a process is there and not a zombie.
func Alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		_, after, _ := bytes.Cut(stat, []byte(") "))
		return !bytes.HasPrefix(after, []byte("Z"))
	}
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && !bytes.HasPrefix(bytes.TrimSpace(out), []byte("Z"))
}

// Gone waits until none of the processes is alive.
func Gone(t testing.TB, pids []int) {
	t.Helper()
	if !poll.Holds(poll.Patience, func() bool { return !slices.ContainsFunc(pids, Alive) }) {
		t.Errorf("of %v some are still alive", pids)
	}
}
