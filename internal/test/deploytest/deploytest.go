//go:build unix

// Package deploytest runs what the deployment examples start: redis-server with
// their settings, and redlatch with their command lines. Paths and addresses of
// an example are replaced by those of the test.
package deploytest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/fresh"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// Program builds redlatch, once for a test binary, and returns its path.
func Program(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds redlatch, and -short starts no servers")
	}
	path, err := program()
	check.Must(t, err)
	return path
}

// built is the folder of the program.
var built string

var program = sync.OnceValues(func() (path string, err error) {
	if built, err = os.MkdirTemp("", "redlatch-deploy"); err != nil {
		return "", err
	}
	path = filepath.Join(built, "redlatch")
	cmd := exec.Command("go", "build", "-o", path, "./cmd/redlatch")
	cmd.Dir = "../.." // from the folder of an example
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// Main is for TestMain: it runs the tests, and removes what Program built.
func Main(m *testing.M) {
	code := m.Run()
	if built != "" {
		os.RemoveAll(built)
	}
	os.Exit(code)
}

// Serve starts a redis-server with the arguments of an example, on a port of its
// own, and returns host:port when it listens. It ends with the test.
func Serve(t testing.TB, args ...string) string {
	t.Helper()
	port := servertest.FreePort(t)
	// What comes last counts.
	cmd := exec.Command(servertest.Need(t), append(args, "--port", port, "--bind", "127.0.0.1")...)
	check.Must(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	addr := net.JoinHostPort("127.0.0.1", port)
	poll.Until(t, fmt.Sprintf("redis-server %q listens", args), func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return addr
}

// Command is a command line of an example.
type Command struct {
	Args []string
	Env  []string // added to PATH and HOME alone
	Dir  string
}

// Run runs it to its end, and returns its exit status and its output.
func (c Command) Run(t testing.TB) (code int, out string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), poll.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, c.Env...)
	cmd.Dir = c.Dir
	text, err := cmd.CombinedOutput()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatalf("%q: %v", c.Args, err)
	}
	return cmd.ProcessState.ExitCode(), string(text)
}

// DeclareNew runs the init of an example until the servers are trusted. It adds
// --assume-fresh where it can, so that the test need not wait for a quarantine;
// on a busy machine that takes more than one try.
func DeclareNew(t testing.TB, init Command) {
	t.Helper()
	err := fresh.Try(t.Context(), func(_ context.Context, opts admin.InitOptions) error {
		c := init
		if opts.AssumeFresh {
			c.Args = append(append([]string(nil), c.Args...), "--assume-fresh", "--yes")
		}
		code, out := c.Run(t)
		switch {
		case code == 0:
			return nil
		case strings.Contains(out, "nodes are not new"):
			return fmt.Errorf("%w\n%s", admin.ErrNotFresh, out)
		case code == 64:
			return fmt.Errorf("%w\n%s", redlatch.ErrConfig, out)
		}
		return fmt.Errorf("exit %d\n%s", code, out)
	})
	if err != nil {
		t.Fatalf("%q: %v", init.Args, err)
	}
}

// Script writes an executable script.
func Script(t testing.TB, path, text string) {
	t.Helper()
	check.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	check.Must(t, os.WriteFile(path, []byte(text), 0o755))
}
