// Package deps checks what our packages import.
package deps

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/check"
)

// TestMain runs the tests in the root of the module.
func TestMain(m *testing.M) {
	if err := os.Chdir("../../.."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// list returns what go list prints of packages, a word each.
func list(t *testing.T, args ...string) map[string]bool {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	words := map[string]bool{}
	for w := range strings.FieldsSeq(string(out)) {
		words[w] = true
	}
	return words
}

// deps returns the modules of all packages, outside the standard library and the
// modules of go.work, that path imports directly or indirectly.
func deps(t *testing.T, path string) map[string]bool {
	t.Helper()
	return list(t, "-deps", "-f", `{{if and (not .Standard) .Module (not .Module.Main)}}{{.Module.Path}}{{end}}`, path)
}

// imports returns all of our packages that path imports directly or indirectly.
func imports(t *testing.T, path string) map[string]bool {
	t.Helper()
	return list(t, "-deps", "-f", `{{if and .Module .Module.Main}}{{.ImportPath}}{{end}}`, path)
}

func TestADriverBringsOneClientAlone(t *testing.T) {
	for path, client := range map[string]string{
		"./store/zookeeper": "github.com/go-zookeeper/zk", "./store/redis/rueidis": "github.com/redis/rueidis", "./store/redis/goredis": "github.com/redis/go-redis/v9",
	} {
		d := deps(t, path)
		others := d["github.com/redis/rueidis"] && d["github.com/redis/go-redis/v9"] || d["modernc.org/sqlite"]
		if !d[client] || others || strings.HasSuffix(client, "zk") && len(d) > 1 {
			t.Errorf("%s brings %v", path, d)
		}
	}
}

// layers are the layers from top to bottom, but for cmd and adapters. Of our packages
// each imports only those that are named with it, which are below it, and
// internal/optional.
var layers = []struct{ path, imports string }{
	{"ui", "node/lockerrors admin . node node/risk"},
	{"admin", ". internal/holders internal/clientaccess internal/steptimeout internal/runner internal/protocol observe node/lockerrors node node/risk"},
	{".", "store/redis/direct internal/holders internal/clientaccess internal/runner internal/protocol observe node/lockerrors node node/registry"},
	{"internal/holders", "internal/protocol observe node"},
	{"internal/clientaccess", "internal/runner internal/protocol observe node"},
	{"fence", "node store/redis"},
	{"store/redis/direct", "store/redis store/redis/internal/conns internal/callerreads internal/resp node"},
	{"store/redis/goredis", "store/redis store/redis/internal/conns node"},
	{"store/redis/rueidis", "store/redis store/redis/internal/conns node"},
	{"store/redis", "node/lockerrors internal/nodeaddress store/redis/internal/conns internal/callerreads internal/resp internal/steptimeout node node/risk node/registry"},
	{"store/redis/internal/conns", "internal/resp node"},
	{"store/sqlite", "store/casnode node node/risk node/registry"},
	{"store/postgres", "internal/sqltable store/casnode node node/risk node/registry"},
	{"store/mysql", "internal/nodeaddress internal/sqltable store/casnode node node/risk node/registry"},
	{"store/etcd", "internal/nodeaddress store/casnode node node/risk node/registry"},
	{"store/zookeeper", "internal/nodeaddress store/casnode node node/risk node/registry"},
	{"store/casnode", "internal/nodestate node node/risk"},
	{"store/memory", "internal/nodestate node"},
	{"internal/runner", "node/lockerrors internal/callerreads internal/steptimeout internal/protocol observe node"},
	{"internal/protocol", "node"},
	{"internal/nodestate", "node"},
	{"internal/nodeaddress", ""},
	{"internal/sqltable", "node"},
	{"internal/resp", ""},
	{"internal/callerreads", ""},
	{"internal/steptimeout", ""},
	{"observe", "node/lockerrors node"},
	{"node/nodetest", "internal/test/stall node"},
	{"node/registry", "node"},
	{"node/risk", "node"},
	{"node/lockerrors", "node"},
	{"node", ""},
}

func TestLayersImportDownwards(t *testing.T) {
	const module = "github.com/redlatch/redlatch"
	lower := map[string]bool{"internal/test/stall": true}
	for _, layer := range slices.Backward(layers) {
		allowed := strings.Fields(layer.imports)
		for _, path := range allowed {
			if !lower[path] {
				t.Errorf("%s may import %s, which is named before it", layer.path, path)
			}
		}
		lower[layer.path] = true
		for path := range list(t, "-f", `{{join .Imports "\n"}}`, "./"+layer.path) {
			below, ours := strings.CutPrefix(path, module)
			if below = strings.TrimPrefix(below, "/"); below == "" {
				below = "."
			}
			if ours && below != "internal/optional" && !slices.Contains(allowed, below) {
				t.Errorf("%s imports %s, which is not below it", layer.path, below)
			}
		}
	}
}

// TestWhatShipsImportsNoTestMachinery looks at the command, which brings all layers.
func TestWhatShipsImportsNoTestMachinery(t *testing.T) {
	brings := imports(t, "./cmd/redlatch")
	for p := range brings {
		if strings.Contains(p, "/internal/test") {
			t.Errorf("it brings %s", p)
		}
	}
	if !brings["github.com/redlatch/redlatch/store/etcd"] {
		t.Errorf("it brings only %v", brings)
	}
}

// TestSuperviseKnowsNoLocks: to supervise, a lease is an interface.
func TestSuperviseKnowsNoLocks(t *testing.T) {
	for p := range imports(t, "./cmd/redlatch/internal/supervise") {
		if !strings.HasPrefix(p, "github.com/redlatch/redlatch/cmd/") && p != "github.com/redlatch/redlatch/internal/childproc" {
			t.Errorf("supervise brings %s", p)
		}
	}
	for m := range deps(t, "./cmd/redlatch/internal/supervise") {
		if strings.HasPrefix(m, "github.com/") {
			t.Errorf("supervise brings %s", m)
		}
	}
}

// TestTheLibraryRequiresNothing has go look at all systems and all tests, without
// go.work: with it a package may import what its module does not require.
func TestTheLibraryRequiresNothing(t *testing.T) {
	text, err := os.ReadFile("go.mod")
	check.Must(t, err)
	if strings.Contains(string(text), "require") {
		t.Errorf("go.mod is\n%s", text)
	}
	tidy := exec.Command("go", "mod", "tidy", "-diff")
	tidy.Env = append(os.Environ(), "GOWORK=off", "GOPROXY=off")
	if out, err := tidy.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", tidy, err, out)
	}
}

// TestThePlaygroundIsTheProtocolAlone: a store or a client would make the page
// several times as large.
func TestThePlaygroundIsTheProtocolAlone(t *testing.T) {
	const module = "github.com/redlatch/redlatch/"
	t.Setenv("GOOS", "js")
	t.Setenv("GOARCH", "wasm")
	want := []string{"docs/playground", "internal/nodestate", "internal/protocol", "internal/test/world", "node"}
	var got []string
	for p := range imports(t, "./docs/playground") {
		got = append(got, strings.TrimPrefix(p, module))
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("it brings %v, not %v", got, want)
	}
	if d := deps(t, "./docs/playground"); len(d) > 0 {
		t.Errorf("it brings %v", d)
	}
}
