//go:build unix

package servertest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/redisproc"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

func TestMain(m *testing.M) { os.Exit(servertest.Main(m)) }

// TestServerIsTheOneThatTheVariableNames names a program that leaves a trace and
// becomes a server.
func TestServerIsTheOneThatTheVariableNames(t *testing.T) {
	server := servertest.Need(t)
	dir := t.TempDir()
	program, trace := filepath.Join(dir, "server"), filepath.Join(dir, "trace")
	script := fmt.Sprintf("#!/bin/sh\necho here > '%s'\nexec '%s' \"$@\"\n", trace, server)
	must(t, os.WriteFile(program, []byte(script), 0o700))
	t.Setenv(redisproc.Variable, program)
	if reply := servertest.Redis(t, 1)[0].Do("PING"); reply != "PONG" {
		t.Errorf("PING: %s", reply)
	}
	if _, err := os.Stat(trace); err != nil {
		t.Errorf("another server was started: %v", err)
	}
}

// TestVariableThatNamesNoProgramIsAnError names a file that is not there: no
// other server is taken for it.
func TestVariableThatNamesNoProgramIsAnError(t *testing.T) {
	if testing.Short() {
		t.Skip("without servers the variable is not looked at")
	}
	missing := filepath.Join(t.TempDir(), "missing")
	t.Setenv(redisproc.Variable, missing)
	defer func() {
		if text := fmt.Sprint(recover()); !strings.Contains(text, redisproc.Variable) || !strings.Contains(text, missing) {
			t.Errorf("it is not said what is wrong: %s", text)
		}
	}()
	servertest.Need(&servertest.Outside{})
}
