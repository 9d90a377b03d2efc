package redlatch_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// deps returns the modules of all packages, outside the standard library and
// this module, that path imports directly or indirectly.
func deps(t *testing.T, path string) map[string]bool {
	t.Helper()
	const format = `{{if and (not .Standard) .Module (not .Module.Main)}}{{.Module.Path}}{{end}}`
	out, err := exec.Command("go", "list", "-deps", "-f", format, path).CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	modules := map[string]bool{}
	for m := range strings.FieldsSeq(string(out)) {
		modules[m] = true
	}
	return modules
}

func TestCoreImportsTheStandardLibraryAlone(t *testing.T) {
	for _, path := range []string{".", "./admin", "./node", "./node/nodetest", "./memory", "./redis", "./redis/direct", "./fence", "./ui"} {
		if d := deps(t, path); len(d) > 0 {
			t.Errorf("%s brings %v", path, d)
		}
	}
}

func TestADriverBringsOneClientAlone(t *testing.T) {
	if d := deps(t, "./redis/rueidis"); !d["github.com/redis/rueidis"] || d["github.com/redis/go-redis/v9"] || d["modernc.org/sqlite"] {
		t.Errorf("redis/rueidis brings %v", d)
	}
	if d := deps(t, "./redis/goredis"); !d["github.com/redis/go-redis/v9"] || d["github.com/redis/rueidis"] || d["modernc.org/sqlite"] {
		t.Errorf("redis/goredis brings %v", d)
	}
}

// imports returns all packages of this module that path imports directly or
// indirectly.
func imports(t *testing.T, path string) map[string]bool {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", "-f", `{{if and .Module .Module.Main}}{{.ImportPath}}{{end}}`, path).CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	packages := map[string]bool{}
	for p := range strings.FieldsSeq(string(out)) {
		packages[p] = true
	}
	return packages
}

func TestNodesKnowTheContractAlone(t *testing.T) {
	const core, contract = "github.com/redlatch/redlatch", "github.com/redlatch/redlatch/node"
	for _, path := range []string{"./internal/nodestate", "./internal/rownode", "./memory", "./sqlite", "./postgres", "./mysql", "./redis", "./redis/direct", "./redis/rueidis", "./redis/goredis", "./node/nodetest", "./fence"} {
		switch brings := imports(t, path); {
		case brings[core]:
			t.Errorf("%s brings package redlatch", path)
		case !brings[contract]:
			t.Errorf("%s does not bring package node", path) // or the paths above are wrong
		}
	}
	if brings := imports(t, "./node"); len(brings) != 1 {
		t.Errorf("package node brings %v", brings)
	}
}

// layers is this module from top to bottom. A package imports the packages that
// are named after it, and what those import, and nothing else of this module.
var layers = []struct{ path, imports string }{
	{"ui", "admin . node"},
	{"admin", ". internal/inside internal/progress internal/runner internal/protocol node"},
	{".", "internal/inside internal/runner internal/protocol node"},
	{"internal/inside", "internal/runner internal/protocol node"},
	{"internal/runner", "internal/progress internal/protocol node"},
	{"internal/protocol", "node"},
	{"internal/nodestate", "node"},
	{"memory", "internal/nodestate node"},
	{"redis", "internal/progress node"},
	{"redis/direct", "redis redis/internal/conns internal/resp node"},
	{"sqlite", "node"},
	{"postgres", "internal/rownode node"},
	{"mysql", "internal/rownode node"},
	{"internal/rownode", "internal/nodestate node"},
	{"fence", "node redis"},
	{"internal/progress", ""},
	{"node", ""},
}

func TestLayersImportDownwards(t *testing.T) {
	const module = "github.com/redlatch/redlatch"
	for _, layer := range layers {
		out, err := exec.Command("go", "list", "-f", `{{join .Imports "\n"}}`, "./"+layer.path).CombinedOutput()
		if err != nil {
			t.Fatalf("go list: %v\n%s", err, out)
		}
		allowed := strings.Fields(layer.imports)
		for path := range strings.FieldsSeq(string(out)) {
			below, ours := strings.CutPrefix(path, module)
			if below = strings.TrimPrefix(below, "/"); below == "" {
				below = "."
			}
			if ours && !slices.Contains(allowed, below) {
				t.Errorf("%s imports %s, which is not below it", layer.path, below)
			}
		}
	}
}
