//go:build unix

package chaos_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/chaos"
)

// mutants are rules for readers, slots and kept locks in the scripts of the
// servers, each made wrong. old occurs once in the file.
var mutants = []struct {
	what, file, old, wrong string
	want                   chaos.Rule
}{
	{"a reader that is alone is not seen", "lib/group.lua", "  elseif group.count == 0 then", "  elseif group.count <= 1 then", chaos.Overlap},
	{"readers are let in beside a writer", "lib/queue.lua", "kind == taken and kind ~= '' and", "kind ~= '' and", chaos.Overlap},
	{"a slot that is taken is given again", "share.lua", "    if free[at] then free[at] = '0' end", "    if not free[at] then free[at] = '0' end", chaos.Overlap},
	{"the release of one reader frees the others", "share.lua", "  write(taken, count - 1, group.last)", "  write(taken, 0, group.last)", chaos.Overlap},
	{"readers' tokens are compared with nothing", "share.lua", "if not shared or token <= floor then", "if not shared then", chaos.Order},
	{"a release frees a lock that is to be kept", "share.lua", "    keep(tonumber(ARGV[15]))\n", "    drop()\n", chaos.Keep},
}

// TestMutantsOfTheScriptsAreFoundOut gives the clients scripts with one place made
// wrong: they send them to the servers.
func TestMutantsOfTheScriptsAreFoundOut(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the clients anew for every mutant")
	}
	only := os.Getenv("REDLATCH_MUTANT")
	for _, m := range mutants {
		if !strings.Contains(m.what, only) {
			continue
		}
		t.Run(m.what, func(t *testing.T) {
			t.Parallel()
			c := config(t, "flush-scripts,client-clock")
			c.Path, c.Args = build(t, "../../redis/lua/"+m.file, m.old, m.wrong), []string{"redlatch-torture", chaos.ClientVerb}
			c.For, c.Names, c.Least, c.Most = 4*time.Second, 1, 5*time.Millisecond, 100*time.Millisecond
			for range 10 { // on a busy machine few locks are taken in so short a run
				if r := run(t, c); slices.Contains(rules(r.Verdict.Violations), m.want) {
					return
				}
				c.Seed++
			}
			t.Errorf("the judge finds no %s", m.want)
		})
	}
}

// build returns redlatch-torture with one place of a file made wrong.
func build(t *testing.T, file, old, wrong string) (binary string) {
	t.Helper()
	path, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), old); n != 1 {
		t.Fatalf("%s has %d places that read\n%s\nwant 1: has the script changed?", file, n, old)
	}
	dir := t.TempDir()
	mutant, overlay := filepath.Join(dir, filepath.Base(file)), filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{path: mutant}})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{mutant: []byte(strings.Replace(string(source), old, wrong, 1)), overlay: text} {
		if err := os.WriteFile(name, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	binary = filepath.Join(dir, "redlatch-torture")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, "../../cmd/redlatch-torture").CombinedOutput(); err != nil {
		t.Fatalf("it does not compile: %v\n%s", err, out)
	}
	return binary
}
