//go:build unix

package scripts_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

// servers runs servers.sh with the tests of a small package.
func servers(t *testing.T, run string, programs ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := exec.Command("scripts/servers.sh", programs...)
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "PACKAGES=./internal/test/servertest", "RUN="+run)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

// TestServersPrintsARowForEachServer runs tests on a server, and shows that a
// program that is none, and a test that fails, are reported.
func TestServersPrintsARowForEachServer(t *testing.T) {
	t.Parallel()
	server := servertest.Need(t)
	row := regexp.MustCompile(`(?m)^\| [A-Z][a-z]+ [0-9.]+ \| ./internal/test/servertest \| ([0-9]+) \| ([0-9]+) \| 0 \| [0-9]+ \|$`)

	out, errs, err := servers(t, "TestServerIsTheOne", server)
	if m := row.FindStringSubmatch(out); err != nil || m == nil || m[1] != "1" || m[2] != "0" {
		t.Errorf("%v\n%s%s", err, out, errs)
	}
	out, errs, err = servers(t, "TestServerIsTheOne", "false", server)
	if err == nil || !strings.Contains(errs, "false does not print a version") || row.FindString(out) == "" {
		t.Errorf("a program that is no server: %v\n%s%s", err, out, errs)
	}
	// One that says that it is a server, and is not: the test fails.
	liar := t.TempDir() + "/liar"
	text := "#!/bin/sh\n[ \"$1\" != --version ] || { echo 'Liar server v=1.0'; exit; }\nexit 1\n"
	must(t, os.WriteFile(liar, []byte(text), 0o700))
	out, errs, err = servers(t, "TestServerIsTheOne", liar)
	if m := row.FindStringSubmatch(out); err == nil || m == nil || m[2] != "1" || !strings.Contains(errs, "ended by itself") {
		t.Errorf("a server that does not start: %v\n%s%s", err, out, errs)
	}
}
