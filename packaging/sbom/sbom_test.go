package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"github.com/redlatch/redlatch/internal/test/check"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

var must = check.Must

// document runs bom on a program, and reads what it
// wrote.
func document(t *testing.T, program, to string) (doc bom) {
	t.Helper()
	must(t, run([]string{"bom", "v1.2.3+x", "2026-01-31T09:00:00Z", program, to}))
	text, err := os.ReadFile(to)
	must(t, err)
	must(t, json.Unmarshal(text, &doc))
	return doc
}

func TestBomNamesEveryModuleThatTheProgramHas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	// Itself has no modules.
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, "../../cmd/redlatch").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	out, err := exec.Command("go", "version", "-m", program).Output()
	must(t, err)
	doc := document(t, program, filepath.Join(dir, "bom.json"))
	has := map[string]string{}
	for _, c := range doc.Components {
		has[c.Name] = c.Version
		if c.PURL != "pkg:golang/"+c.Name+"@"+strings.ReplaceAll(c.Version, "+", "%2B") {
			t.Errorf("%s has the address %q", c.Name, c.PURL)
		}
	}
	if library := "github.com/redlatch/redlatch"; has[library] != "v1.2.3+x" {
		t.Errorf("%s is %q, want the version of the program", library, has[library])
	}
	modules := 0
	for line := range strings.SplitSeq(string(out), "\n") {
		if f := strings.Fields(line); len(f) > 2 && f[0] == "dep" {
			modules++
			if has[f[1]] != f[2] && f[2] != "(devel)" {
				t.Errorf("%s is %q, want %q", f[1], has[f[1]], f[2])
			}
		}
	}
	if modules < 5 || len(doc.Components) != modules+1 || "go"+has["std"] != runtime.Version() {
		t.Errorf("%d components for %d modules and the library of Go %s", len(doc.Components), modules, has["std"])
	}
}

func TestBomIsThatOfTheProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	self, err := os.Executable()
	must(t, err)
	doc := document(t, self, filepath.Join(dir, "a.json"))
	if c := doc.Metadata.Component; c.Version != "v1.2.3+x" || !strings.Contains(c.PURL, "@v1.2.3%2Bx") || doc.Metadata.Timestamp != "2026-01-31T09:00:00Z" {
		t.Errorf("the program is %+v of %s", c, doc.Metadata.Timestamp)
	}
	content, err := os.ReadFile(self)
	must(t, err)
	if sum := doc.Metadata.Component.Hashes[0].Content; sum != fmt.Sprintf("%x", sha256.Sum256(content)) {
		t.Errorf("the program has the sum %s", sum)
	}
}

func TestEveryModuleHasItsLicence(t *testing.T) {
	t.Parallel()
	to := filepath.Join(t.TempDir(), "licences")
	must(t, run([]string{"licences", "../../cmd/redlatch", to}))
	text, err := os.ReadFile(to)
	must(t, err)
	// One of each kind of licence, one with a notice, and one that only Windows has.
	for _, part := range []string{"The Go standard library: LICENSE", "github.com/go-sql-driver/mysql v", "Mozilla Public License",
		"github.com/redis/rueidis v", ": NOTICE", "modernc.org/sqlite v", "github.com/inconshreveable/mousetrap v"} {
		if !strings.Contains(string(text), part) {
			t.Errorf("the licences have no %q", part)
		}
	}
	if strings.Contains(string(text), "github.com/redlatch/redlatch v") {
		t.Error("our own module is among the others")
	}
	if err := appendLicences(nil, "a module", t.TempDir()); err == nil || !strings.Contains(err.Error(), "no licence") {
		t.Errorf("a module without a licence: %v", err)
	}
}

func TestCommandLineIsChecked(t *testing.T) {
	for _, args := range [][]string{nil, {"bom"}, {"bom", "a"}, {"list", "a", "b"}, {"bom", "v1", "", "sbom_test.go", "/nowhere"}, {"licences", "./nowhere", "/nowhere"}} {
		if run(args) == nil {
			t.Errorf("%q is no error", args)
		}
	}
}
