//go:build unix

// Package flock runs the scripts that docs/migrate.md shows for flock.
package flock

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/exclusion"
)

// bin is where redlatch was built.
var bin string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "migrate-flock")
	if err != nil {
		panic(err)
	}
	bin = dir
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "redlatch"), "../../../cmd/redlatch")
	build.Stderr = os.Stderr
	err = build.Run()
	code := 1
	if err == nil {
		code = m.Run()
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

// job notes when two are inside, and how often it ran.
const job = `#!/bin/sh
mkdir inside || echo "two are inside" >>crowded
sleep 0.03
rmdir inside
echo "$0" >>ran
`

// A folder is where scripts run that share a lock.
type folder struct {
	t   *testing.T
	dir string
}

func newFolder(t *testing.T) *folder {
	f := &folder{t: t, dir: t.TempDir()}
	for _, name := range []string{"nightly.sh", "collect.sh", "publish.sh"} {
		check.Must(t, os.WriteFile(filepath.Join(f.dir, name), []byte(job), 0o755))
	}
	return f
}

// sh runs a script of this package, or commands, in the folder.
func (f *folder) sh(args ...string) (string, error) {
	here, err := os.Getwd()
	if err != nil {
		f.t.Error(err)
	}
	for i, a := range args {
		if strings.HasSuffix(a, ".sh") {
			args[i] = filepath.Join(here, a)
		}
	}
	cmd := exec.Command("sh", args...)
	cmd.Dir = f.dir
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "REDLATCH_NODES=local", "REDLATCH_STATE_DIR="+f.dir, "XDG_CONFIG_HOME="+os.DevNull)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// crowded reports whether two were inside.
func (f *folder) crowded() bool {
	_, err := os.Stat(filepath.Join(f.dir, "crowded"))
	return err == nil
}

// contend runs each script eight times, all scripts at once.
func (f *folder) contend(scripts ...string) {
	var all sync.WaitGroup
	for _, script := range scripts {
		for range 2 {
			all.Go(func() {
				for range 4 {
					if out, err := f.sh(script); err != nil {
						f.t.Errorf("%s: %v\n%s", script, err, out)
					}
				}
			})
		}
	}
	all.Wait()
	ran, err := os.ReadFile(filepath.Join(f.dir, "ran"))
	check.Must(f.t, err)
	steps := 8 * (len(scripts) + strings.Count(strings.Join(scripts, " "), "steps")) // of those two each
	if n := strings.Count(string(ran), "\n"); n != steps {
		f.t.Errorf("%v: %d steps ran, want %d", scripts, n, steps)
	}
}

func TestWithBothHeldEitherMayBeLeftOut(t *testing.T) {
	for _, scripts := range [][]string{
		{"before.sh", "both.sh"},
		{"both.sh", "after.sh"},
		{"before.sh", "steps-before.sh"},
		{"after.sh", "steps-after.sh"},
	} {
		t.Run(strings.Join(scripts, " and "), func(t *testing.T) {
			t.Parallel()
			f := newFolder(t)
			if f.contend(scripts...); f.crowded() {
				exclusion.Never(t, "two are inside")
			}
		})
	}
}

// TestOldAndNewAloneDoNotExclude is what the step in between is for, and shows
// that two inside are seen.
func TestOldAndNewAloneDoNotExclude(t *testing.T) {
	f := newFolder(t)
	out, err := f.sh("-c", `flock nightly.lock sh -c 'mkdir inside && sh "$1"' sh "$1"`, "sh", "after.sh")
	if err != nil || !f.crowded() {
		t.Errorf("the new script is kept out by the old lock alone, or it was not seen: %v\n%s", err, out)
	}
}

// TestExitCodesAreAsTheTableSays has the lock held, and asks for it.
func TestExitCodesAreAsTheTableSays(t *testing.T) {
	for command, want := range map[string]int{
		"flock nightly.lock flock -n nightly.lock true":                                                     1,
		"flock nightly.lock flock -w 0.01 nightly.lock true":                                                1,
		"flock nightly.lock flock -n -E 7 nightly.lock true":                                                7,
		"flock nightly.lock sh -c 'exit 3'":                                                                 3,
		"flock nightly.lock -c 'exit 3'":                                                                    3,
		"redlatch run nightly -- redlatch run -q -n nightly -- true":                                        75,
		"redlatch run nightly -- redlatch run -q -w 10ms nightly -- true":                                   75,
		"redlatch run nightly -- redlatch run -q -n -E 7 nightly -- true":                                   7,
		"redlatch run nightly -- sh -c 'exit 3'":                                                            3,
		"flock -s nightly.lock flock -s -n nightly.lock true":                                               0,
		"flock nightly.lock sh -c 'sleep 5 >/dev/null 2>&1 & exit 0'; flock -n nightly.lock true":           1,
		"flock -o nightly.lock sh -c 'sleep 5 >/dev/null 2>&1 & exit 0'; flock -n nightly.lock true":        0,
		"redlatch run nightly -- sh -c 'sleep 5 >/dev/null 2>&1 & exit 0'; redlatch run -n nightly -- true": 0,
	} {
		out, err := newFolder(t).sh("-c", command)
		code := 0
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			code = exit.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		if code != want {
			t.Errorf("%s: exit %d, want %d\n%s", command, code, want, out)
		}
	}
}
