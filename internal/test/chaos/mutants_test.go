//go:build unix

package chaos_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/chaos"
	"github.com/redlatch/redlatch/internal/test/mutants"
)

// scriptMutants are rules for readers, slots and kept locks in the scripts of the
// servers, each made wrong. old occurs once in the file.
var scriptMutants = []struct {
	what, file, old, wrong string
	want                   chaos.Rule
}{
	{"a reader that is alone is not seen", "lib/group.lua", "[1]) - redis.call('ZRANK', e.groupKey, first) + 1", "[1]) - redis.call('ZRANK', e.groupKey, first)", chaos.Overlap},
	{"readers are let in beside a writer", "lib/holders.lua", "kind == taken and kind ~= '' and", "kind ~= '' and", chaos.Overlap},
	{"a slot that is taken is given again", "lib/group.lua", "if free[at] and not (without", "if not free[at] and not (without", chaos.Overlap},
	{"the release of one reader frees the others", "lib/holders.lua", "  e.count = e.count - 1\n", "  e.count = 0\n", chaos.Overlap},
	{"readers' tokens are compared with nothing", "lib/fence.lua", "not (reader and token > e.floor)", "not reader", chaos.TokenOrder},
	{"a release frees a lock that is to be kept", "release.lua", "keep(tonumber(ARGV[7]))", "drop()", chaos.Keep},
}

// TestMutantsOfTheScriptsAreFoundOut gives the clients scripts with one place made
// wrong: they send them to the servers.
func TestMutantsOfTheScriptsAreFoundOut(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the clients anew")
	}
	var edits []mutants.Edit
	for _, m := range scriptMutants {
		edits = append(edits, mutants.Edit{Name: m.what, File: "store/redis/lua/" + m.file, Old: m.old, New: m.wrong})
	}
	mutants.Fits(t, edits...)
	// One build: its clients change a script while they load it.
	const name, between = "a script is changed", "\x1f"
	binary := mutants.Build(t, []mutants.Edit{{Name: name, File: "store/redis/scripts.go", Old: "	return strings.ReplaceAll(string(text), ", New: fmt.Sprintf(`
	if change := strings.Split(mutantOn, %q); change[0] == file {
		return strings.Replace(string(text), change[1], change[2], 1)
	}
	return strings.ReplaceAll(string(text), `, between)}}, "./cmd/redlatch-torture", "build -ldflags=-s")[name]
	for _, m := range scriptMutants {
		if binary == "" || !strings.Contains(m.what, os.Getenv("REDLATCH_MUTANT")) {
			continue
		}
		t.Run(m.what, func(t *testing.T) {
			t.Parallel()
			c := config(t, "flush-scripts,client-clock")
			env := mutants.Env + "=" + strings.Join([]string{"lua/" + m.file, m.old, m.wrong}, between)
			c.Path, c.Args = "/usr/bin/env", []string{"env", env, binary, chaos.ClientVerb}
			c.For, c.Names, c.Least, c.Most = 4*time.Second, 1, 5*time.Millisecond, 100*time.Millisecond
			if !found(t, c, breaks(m.want)) {
				t.Errorf("the judge finds no %s", m.want)
			}
		})
	}
}
