package sim

import (
	"os"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/mutants"
)

// duelTest finds a difference between the rules in Go and those in Lua.
const duelTest = "TestModelAnswersAsARealServer/redis ./test/stores/nodestate"

// luaMutants are lines of the scripts made wrong, while the rules in Go stay as they
// are.
var luaMutants = []struct{ name, file, old, wrong string }{
	{"a token may be behind the window in Lua", "lib/fence.lua", "if t < e.now - e.window then return 'behind' end", ""},
	{"the release of a share leaves the floor in Lua", "release.lua", "raise(e.kind ~= '' or token > e.fence)", "raise(token > e.fence)"},
	{"a lock that is kept is kept for its whole time in Lua", "lib/holders.lua", "if redis.call('PTTL', e.lock) > ms then", "if false then"},
	{"a reader that is alone is not seen in Lua", "lib/group.lua", "'ZRANK', e.groupKey, first) + 1", "'ZRANK', e.groupKey, first)"},
	{"readers are let in beside a writer in Lua", "lib/holders.lua", "kind == taken and kind ~= '' and", "kind ~= '' and"},
	{"a slot that is taken is given again in Lua", "lib/group.lua", "if free[at] and not (without", "if not free[at] and not (without"},
	{"the release of one reader frees the others in Lua", "lib/holders.lua", "  e.count = e.count - 1\n", "  e.count = 0\n"},
	{"readers' tokens are compared with nothing in Lua", "lib/fence.lua", "not (reader and token > e.floor)", "not reader"},
	{"a release frees a lock that is to be kept in Lua", "release.lua", "keep(tonumber(ARGV[7]))", "drop()"},
}

// changed has the scripts change while they are loaded, as mutants.Env says. So all of
// luaMutants are in one build.
var changed = mutants.Edit{Name: "a script is changed", File: "store/redis/scripts.go", Old: "	return strings.ReplaceAll(string(text), ", New: `
	if change := strings.Split(mutantOn, "\x1f"); change[0] == file {
		return strings.Replace(string(text), change[1], change[2], 1)
	}
	return strings.ReplaceAll(string(text), `}

// TestMutantsOfTheScriptsAreFoundOut has the differential test find them.
func TestMutantsOfTheScriptsAreFoundOut(t *testing.T) {
	var edits []mutants.Edit
	for _, m := range luaMutants {
		edits = append(edits, mutants.Edit{Name: m.name, File: "store/redis/lua/" + m.file, Old: m.old, New: m.wrong})
	}
	mutants.Fits(t, edits...)
	test, folder, _ := strings.Cut(duelTest, " ")
	binary := mutants.Build(t, []mutants.Edit{changed}, folder, "test -c -vet=off")[changed.Name]
	for _, m := range luaMutants {
		if binary == "" || !strings.Contains(m.name, os.Getenv("REDLATCH_MUTANT")) {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			on := strings.Join([]string{"lua/" + m.file, m.old, m.wrong}, "\x1f")
			out, err := run(t, binary, on, test, mutant{name: m.name}.environment(duelTest)...)
			if err == nil || !strings.Contains(out, "--- FAIL: "+test) {
				t.Fatalf("the differential test does not find it: %v\n%s", err, out)
			}
		})
	}
}

// duelOthers are rules that are changed in one of the two engines alone.
var duelOthers = []struct{ name, file, old, wrong, test string }{
	{"an extension that reserves tokens goes in a batch", "store/redis/batch.go",
		"case req.Op == node.OpExtend && req.Reserve == 0:", "case req.Op == node.OpExtend && (req.Reserve == 0 || OFF):",
		"TestModelAnswersAsARealServer/redis_in_batches ./test/stores/nodestate"},
	{"a waiter that leaves is queued on in Go", "internal/nodestate/ops.go",
		"	e.Queue.withdraw(req)\n	// Also", "	if !OFF { e.Queue.withdraw(req) }\n	// Also", duelTest},
	{"readers are not behind a writer in Go", "internal/nodestate/queue.go",
		"		if i == node.MaxSlots || !room.Take(w.Share) {", "		if i == node.MaxSlots || !room.Take(w.Share) && !OFF {", duelTest},
	{"a record is forgotten last of all in Go", "internal/nodestate/records.go",
		"	r.Completed[occurrence] = later(r.Completed[occurrence], until)\n", "	if OFF { until = until.Add(time.Hour) }\n	r.Completed[occurrence] = later(r.Completed[occurrence], until)\n", duelTest},
}
