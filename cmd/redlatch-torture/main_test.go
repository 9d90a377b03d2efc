//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	// The race detector has a process that ends well sleep for a second.
	os.Setenv("GORACE", "atexit_sleep_ms=0")
	testscript.Main(m, map[string]func(){"redlatch-torture": main})
}

// command runs redlatch-torture to its end.
func command(t testing.TB, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return both(t, exec.Command("redlatch-torture", args...))
}

// both runs a command and returns stdout and stderr apart.
func both(t testing.TB, cmd *exec.Cmd) (code int, stdout, stderr string) {
	t.Helper()
	var out, err strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &err
	return exitCode(t, cmd.Run()), out.String(), err.String()
}

// exitCode is the exit code as a shell has it: 128 and the signal for a process
// that died by one.
func exitCode(t testing.TB, err error) int {
	t.Helper()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &exit):
		t.Fatal(err)
	}
	if w := exit.Sys().(syscall.WaitStatus); w.Signaled() {
		return exitSignal + int(w.Signal())
	}
	return exit.ExitCode()
}
