// Package mutants builds code in which a rule can be switched off, so that a test
// can show that somebody misses it.
//
// All mutants that do not change the same place are in one build. Which of them
// is on says an environment variable: a build takes far longer than a run.
package mutants

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/check"
)

// Edit changes one place of a file.
type Edit struct {
	// Name is that of the mutant.
	Name string
	// File is relative to the root of the repository. Old is in it once.
	File, Old string
	// New takes the place of Old. OFF in it is true while the mutant is on, and
	// off("NAME") while another one is. If New has neither, it is always on.
	New string
}

var (
	removed = regexp.MustCompile(`(?s)\[-(.*?)-\]`)
	added   = regexp.MustCompile(`(?s)\[\+(.*?)\+\]`)
)

// Change returns the Edit that takes what is between [- and -] out of a text, and
// puts in what is between [+ and +].
func Change(name, file, text string) Edit {
	return Edit{
		Name: name, File: file,
		Old: removed.ReplaceAllString(added.ReplaceAllString(text, ""), "$1"),
		New: added.ReplaceAllString(removed.ReplaceAllString(text, ""), "$1"),
	}
}

// Env is the variable that names the mutant that is on. Its value is mutantOn in
// the packages with edits.
const Env = "REDLATCH_MUTANT_ON"

// variable is the file that such a package gets.
const variable = `package %s

import "os"

var mutantOn = os.Getenv(` + "`" + Env + "`" + `)
`

var (
	clause = regexp.MustCompile(`(?m)^package (\w+)`)
	asks   = regexp.MustCompile(`\boff\(("[^"]*")\)`)
)

// Root is the root of the repository.
func Root(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOWORK").Output()
	check.Must(t, err)
	return filepath.Dir(strings.TrimSpace(string(out)))
}

// Fits checks that each edit changes one place.
func Fits(t testing.TB, edits ...Edit) {
	t.Helper()
	root := Root(t)
	for _, e := range edits {
		source := read(t, root, e.File)
		if n := strings.Count(source, e.Old); n != 1 {
			t.Errorf("%s: %s has %d places that read\n%s\nwant 1: has the code changed?", e.Name, e.File, n, e.Old)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

func read(t testing.TB, root, file string) string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(root, file))
	check.Must(t, err)
	return string(source)
}

// Build builds a package with the edits in the code, with the go tool, and returns
// the binary that has each of them, by name. Command is "build" or "test -c",
// with any flags. Edits of the same place are in different binaries, and so are
// those that are always on. Unless mutants are asked for, as by make mutants, it only
// checks that each edit has its place, and returns no binary.
func Build(t testing.TB, edits []Edit, folder, command string) (binaries map[string]string) {
	t.Helper()
	Fits(t, edits...)
	if os.Getenv("REDLATCH_MUTANTS") == "" && os.Getenv("REDLATCH_MUTANT") == "" {
		t.Logf("%d edits have their places; make mutants builds them", len(edits))
		return nil
	}
	root := Root(t)
	binaries = map[string]string{}
	for len(edits) > 0 {
		var later []Edit
		b := batch{t: t, root: root, dir: t.TempDir(), texts: map[string]string{}}
		binary := filepath.Join(b.dir, "mutants.test")
		for _, e := range edits {
			if !b.add(e) {
				later = append(later, e)
				continue
			}
			binaries[e.Name] = binary
		}
		b.build(folder, strings.Fields(command), binary)
		edits = later
	}
	return binaries
}

// batch is a set of edits that are in one build.
type batch struct {
	t         testing.TB
	root, dir string
	texts     map[string]string // by path
	full      bool              // what is in it is always on
}

// add adds an edit, if it can be built together with those before it.
func (b *batch) add(e Edit) bool {
	b.t.Helper()
	path := filepath.Join(b.root, e.File)
	text, found := b.texts[path]
	if !found {
		text = read(b.t, b.root, e.File)
	}
	changed := strings.ReplaceAll(e.New, "OFF", "off("+strconv.Quote(e.Name)+")")
	changed = asks.ReplaceAllString(changed, "(mutantOn == $1)")
	always := !strings.Contains(changed, "mutantOn")
	if b.full || always && len(b.texts) > 0 || strings.Count(text, e.Old) != 1 {
		return false
	}
	b.full = always
	b.texts[path] = strings.Replace(text, e.Old, changed, 1)
	if !always {
		b.texts[filepath.Join(filepath.Dir(path), "mutant_on.go")] = fmt.Sprintf(variable, clause.FindStringSubmatch(text)[1])
	}
	return true
}

// build lets the go tool take the texts for those of the files.
func (b *batch) build(folder string, command []string, binary string) {
	b.t.Helper()
	replace := map[string]string{}
	for path, text := range b.texts {
		file := filepath.Join(b.dir, fmt.Sprintf("%d-%s", len(replace), filepath.Base(path)))
		check.Must(b.t, os.WriteFile(file, []byte(text), 0o666))
		replace[path] = file
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	check.Must(b.t, err)
	file := filepath.Join(b.dir, "overlay.json")
	check.Must(b.t, os.WriteFile(file, overlay, 0o666))
	args := append(command, "-overlay", file, "-o", binary, folder)
	tool := exec.CommandContext(b.t.Context(), "go", args...)
	tool.Dir = b.root
	if out, err := tool.CombinedOutput(); err != nil {
		b.t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
