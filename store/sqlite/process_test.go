package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/node"
)

var must = check.Must

// roles are what the processes of a test can do with a lock file.
var roles = map[string]func(n *Node, arg string) error{
	"count": count,
	"write": writeAndWait,
}

// TestMain makes the test binary one of the processes of a test when the
// environment names a role.
func TestMain(m *testing.M) {
	role, path, arg := os.Getenv("REDLATCH_TEST_ROLE"), os.Getenv("REDLATCH_TEST_FILE"), os.Getenv("REDLATCH_TEST_ARG")
	if role == "" {
		os.Exit(m.Run())
	}
	if err := play(role, path, arg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func play(role, path, arg string) error {
	// All processes of a test start at the same signal, so that they contend.
	bufio.NewReader(os.Stdin).ReadString('\n')
	n, err := Open(path, nil)
	// On a busy machine those before us may take longer than Open waits.
	for try := 1; try < 6 && errors.Is(err, context.DeadlineExceeded); try++ {
		n, err = Open(path, nil)
	}
	if err != nil {
		return err
	}
	defer n.Close()
	if role == "identify" {
		id, _, err := n.Identity(context.Background())
		fmt.Println(id)
		return err
	}
	return roles[role](n, arg)
}

// process is another process that uses a lock file.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Scanner
	stderr strings.Builder
}

func start(t testing.TB, role, path, arg string) *process {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	p := &process{t: t, cmd: exec.Command(self)}
	p.cmd.Env = append(os.Environ(),
		"REDLATCH_TEST_ROLE="+role, "REDLATCH_TEST_FILE="+path, "REDLATCH_TEST_ARG="+arg)
	p.cmd.Stderr = &p.stderr
	p.stdin, err = p.cmd.StdinPipe()
	must(t, err)
	out, err := p.cmd.StdoutPipe()
	must(t, err)
	p.stdout = bufio.NewScanner(out)
	must(t, p.cmd.Start())
	t.Cleanup(p.kill)
	return p
}

// begin sends the signal to start.
func (p *process) begin() { fmt.Fprintln(p.stdin) }

// line waits for the next output of the process.
func (p *process) line() string {
	p.t.Helper()
	if !p.stdout.Scan() {
		p.cmd.Wait()
		p.t.Fatalf("the process ended early: %v: %s", p.cmd.ProcessState, p.stderr.String())
	}
	return p.stdout.Text()
}

func (p *process) kill() { p.cmd.Process.Kill(); p.cmd.Wait() }

// finish makes the process end, and checks that it succeeded.
func (p *process) finish() {
	p.t.Helper()
	p.stdin.Close()
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("%v: %s", err, p.stderr.String())
	}
}

// writeAndWait stops within a transaction that has written to the name.
func writeAndWait(n *Node, _ string) error {
	end, err := beginWrite(n)
	if err != nil {
		return err
	}
	defer end()
	fmt.Println("writing")
	io.Copy(io.Discard, os.Stdin)
	return nil
}

// beginWrite begins a transaction that has written to the name "name". end rolls it
// back.
func beginWrite(n *Node) (end func(), err error) {
	ctx := context.Background()
	conn, err := n.store.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	end = func() {
		conn.ExecContext(ctx, `ROLLBACK`)
		conn.Close()
	}
	for _, s := range []string{`BEGIN IMMEDIATE`, `REPLACE INTO lock (name, version, state) VALUES ('name', 'new', 'granted')`} {
		if _, err = conn.ExecContext(ctx, s); err != nil {
			end()
			return nil, err
		}
	}
	return end, nil
}

func TestManyProcessesCreateOneFile(t *testing.T) {
	t.Setenv("REDLATCH_STATE_DIR", filepath.Join(t.TempDir(), "new"))
	path, err := DefaultPath()
	must(t, err)
	var all []*process
	for range 20 {
		all = append(all, start(t, "identify", path, ""))
	}
	for _, p := range all {
		p.begin()
	}
	ids := map[string]int{}
	for _, p := range all {
		ids[p.line()]++
		p.finish()
	}
	if len(ids) != 1 {
		t.Errorf("%d processes opened %d different files: %v", len(all), len(ids), ids)
	}
}

func TestTheDeadlineHoldsWhileAnotherProcessWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	n := mustOpen(t, path, systemTime())
	do(t, n, request(node.OpAcquire, "ours", "we"))
	p := start(t, "write", path, "")
	p.begin()
	p.line()

	for op, name := range map[node.Op]string{node.OpAcquire: "name", node.OpExtend: "ours", node.OpRelease: "ours"} {
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		began := time.Now()
		_, err := n.Do(ctx, request(op, name, "we"))
		cancel()
		if !errors.Is(err, node.ErrUnsent) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v: %v, want an error that says that nothing was sent before the deadline", op, err)
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("%v took %v with 300ms to do it in", op, took)
		}
		if !errors.Is(err, node.ErrContended) {
			t.Errorf("the error does not say why: %v", err)
		}
	}
	// A reader is not blocked, and sees only what was committed. A transaction ends
	// without a trace when its process is killed.
	want(t, n, request(node.OpInspect, "name", ""), node.Absent)
	p.kill()
	want(t, n, request(node.OpAcquire, "name", "we"), node.Granted)
}

// request returns a request with times that do not matter, and no token.
func request(op node.Op, name, value string) node.Request {
	return node.Request{
		Op: op, Name: name, Value: value,
		TTL: time.Minute, Fencing: node.Fencing{Window: 10 * time.Second, Retention: time.Hour},
	}
}

// want checks the status of a request.
func want(t testing.TB, n *Node, req node.Request, status node.Status) {
	t.Helper()
	if r := do(t, n, req); r.Status != status {
		t.Errorf("%v of %q by %q: %v (%q), want %v", req.Op, req.Name, req.Value, r.Status, r.Value, status)
	}
}

// fails checks that a request had no effect, and that its error says why.
func fails(t testing.TB, n *Node, req node.Request, says string) {
	t.Helper()
	if r, err := n.Do(context.Background(), req); !errors.Is(err, node.ErrUnsent) || !strings.Contains(err.Error(), says) {
		t.Errorf("%v of %q: %v, %v; want an error that says %q", req.Op, req.Name, r.Status, err, says)
	}
}

// refused checks that a file is not opened, with an error that names it and says why.
func refused(t testing.TB, path, says string) {
	t.Helper()
	n, err := Open(path, nil)
	if err == nil {
		n.Close()
		t.Errorf("%s was opened", path)
	} else if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), says) {
		t.Errorf("the error does not say %q of %s: %v", says, path, err)
	}
}

// do executes a request that must not fail.
func do(t testing.TB, n *Node, req node.Request) node.Reply {
	t.Helper()
	r, err := n.Do(context.Background(), req)
	must(t, err)
	return r
}
