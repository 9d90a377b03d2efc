package redlatch_test

import (
	"os/exec"
	"strings"
	"testing"
)

// deps returns the packages outside the standard library and this module that
// importing path brings, by their modules.
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
	for _, path := range []string{".", "./node", "./node/nodetest", "./memory", "./redis", "./fence"} {
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

// imports returns all packages of this module that importing path brings.
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
	for _, path := range []string{"./memory", "./sqlite", "./redis", "./redis/rueidis", "./redis/goredis", "./node/nodetest", "./fence"} {
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
