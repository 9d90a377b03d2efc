//go:build unix

// Package former runs clients of earlier versions beside the client of this
// tree, on the same servers. See docs/compatibility.md.
package former

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/redlatch/redlatch/internal/test/check"
)

// Version is an earlier version of redlatch, as it is in this repository's
// history.
type Version struct {
	Name string // what it is
	// Ref is the commit, or the tag of a release. It is empty for the present
	// source.
	Ref string
}

// Variable is an environment variable that names other versions to run: refs,
// separated by commas.
const Variable = "REDLATCH_FORMER"

// Versions returns the versions that are run.
func Versions() []Version {
	given := os.Getenv(Variable)
	if given == "" {
		return released
	}
	var list []Version
	for ref := range strings.SplitSeq(given, ",") {
		list = append(list, Version{ref, ref})
	}
	return list
}

// released are the versions that every run of the tests has. A release adds its
// tag here; until the first one, the present source runs beside itself.
var released = []Version{{Name: "the present source"}}

// ErrNoHistory is the error for a checkout that does not have a version's commit: one
// without history, or a release archive.
var ErrNoHistory = errors.New("this checkout has no history that far back")

// workers are where workers are built, and what is built there, by the version's Ref.
var workers struct {
	folder string
	made   sync.Map
}

// Main is for TestMain: it runs the tests, and removes what Worker built.
func Main(m *testing.M) {
	var err error
	if workers.folder, err = os.MkdirTemp("", "former"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(workers.folder)
	os.Exit(code)
}

// Worker returns the worker with the code of a version, which is built once. A checkout
// without history skips the test.
func Worker(t testing.TB, v Version) string {
	t.Helper()
	made, _ := workers.made.LoadOrStore(v.Ref, sync.OnceValues(func() (string, error) {
		folder, err := os.MkdirTemp(workers.folder, "")
		if err != nil {
			return "", err
		}
		root, err := filepath.Abs(filepath.Join("..", "..", ".."))
		if err != nil {
			return "", err
		}
		return Build(v, root, folder)
	}))
	program, err := made.(func() (string, error))()
	if errors.Is(err, ErrNoHistory) {
		t.Skip(err)
	}
	check.Must(t, err)
	return program
}

// Build builds the worker with the code of a version, in a folder. The root is
// that of this repository.
func Build(v Version, root, folder string) (program string, err error) {
	program, worker := filepath.Join(folder, "worker"), filepath.Join(root, "test", "interop", "former", "worker")
	if v.Ref == "" {
		return program, compile(worker, program, ".")
	}
	if _, err := exec.LookPath("git"); err != nil {
		return "", fmt.Errorf("the source of earlier versions is taken out of the history: %w", err)
	}
	if out, err := git(root, "cat-file", "-e", v.Ref+"^{commit}"); err != nil {
		return "", fmt.Errorf("%s: %w: %s", v.Name, ErrNoHistory, out)
	}
	archive := filepath.Join(folder, "source.tar")
	if out, err := git(root, "archive", "--output", archive, v.Ref); err != nil {
		return "", fmt.Errorf("git archive: %w: %s", err, out)
	}
	source := filepath.Join(folder, "source")
	if err := unpack(archive, source); err != nil {
		return "", err
	}
	// Into the module of that version, so that it is built with its code.
	if err := os.CopyFS(filepath.Join(source, "cmd", "formerworker"), os.DirFS(worker)); err != nil {
		return "", err
	}
	return program, compile(source, program, "./cmd/formerworker")
}

// compile builds a package. It trims paths, so that a second build of the same
// source in another folder finds the first one's results.
func compile(dir, program, folder string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-o", program, folder)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build in %s: %w\n%s", dir, err, out)
	}
	return nil
}

// git runs git in the repository, also if another user owns that, as in a
// container.
func git(root string, args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-C", root, "-c", "safe.directory=*"}, args...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return strings.TrimSpace(out.String()), err
}

func unpack(archive, folder string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	if out, err := exec.Command("tar", "-xf", archive, "-C", folder).CombinedOutput(); err != nil {
		return fmt.Errorf("tar: %w: %s", err, out)
	}
	return os.Remove(archive)
}
