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
	for _, path := range []string{".", "./memory", "./nodetest", "./redis", "./fence"} {
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
