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
var luaMutants = []mutant{
	{"a token may be behind the window in Lua", "lua/lib/fence.lua", "[-if t < e.now - e.window then return 'behind' end-]", duelTest},
	{"the release of a share leaves the floor in Lua", "lua/release.lua", "raise([-e.kind ~= '' or -]token > e.fence)", duelTest},
	{"a lock that is kept is kept for its whole time in Lua", "lua/lib/holders.lua", "if [-redis.call('PTTL', e.lock) > ms-][+false+] then", duelTest},
	{"a reader that is alone is not seen in Lua", "lua/lib/group.lua", "'ZRANK', e.groupKey, first)[- + 1-]", duelTest},
	{"readers are let in beside a writer in Lua", "lua/lib/holders.lua", "kind [-== taken and kind -]~= '' and", duelTest},
	{"a slot that is taken is given again in Lua", "lua/lib/group.lua", "if [+not +]free[at] and not (without", duelTest},
	{"the release of one reader frees the others in Lua", "lua/lib/holders.lua", "  e.count = [-e.count - 1-][+0+]\n", duelTest},
	{"readers' tokens are compared with nothing in Lua", "lua/lib/fence.lua", "not [-(reader and token > e.floor)-][+reader+]", duelTest},
	{"a release frees a lock that is to be kept in Lua", "lua/release.lua", "[-keep(tonumber(ARGV[7])-][+drop(+])", duelTest},
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
	edits := make([]mutants.Edit, len(luaMutants))
	for i, m := range luaMutants {
		edits[i] = mutants.Change(m.name, "store/redis/"+m.file, m.change)
	}
	mutants.Fits(t, edits...)
	_, folder, _ := strings.Cut(duelTest, " ")
	binary := mutants.Build(t, []mutants.Edit{changed}, folder, "test -c -vet=off")[changed.Name]
	for i, m := range luaMutants {
		if binary == "" || !strings.Contains(m.name, os.Getenv("REDLATCH_MUTANT")) {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			run(t, binary, strings.Join([]string{m.file, edits[i].Old, edits[i].New}, "\x1f"), m)
		})
	}
}

// duelMutants are rules that are changed in one of the two engines alone.
var duelMutants = []mutant{
	{"an extension that reserves tokens goes in a batch", "store/redis/batch.go",
		"case req.Op == node.OpExtend && [-req.Reserve == 0-][+(req.Reserve == 0 || OFF)+]:",
		"TestModelAnswersAsARealServer/redis_in_batches ./test/stores/nodestate"},
	{"a waiter that leaves is queued on in Go", "internal/nodestate/ops.go",
		"	[-e.Queue.withdraw(req)-][+if !OFF { e.Queue.withdraw(req) }+]\n	// Also", duelTest},
	{"readers are not behind a writer in Go", "internal/nodestate/queue.go", "		if i == node.MaxSlots || !room.Take(w.Share) [+&& !OFF +]{", duelTest},
	{"a record is forgotten last of all in Go", "internal/nodestate/records.go",
		"	[+if OFF { until = until.Add(time.Hour) }\n	+]r.Completed[occurrence] = later(r.Completed[occurrence], until)\n", duelTest},
}
