//go:build unix

package fence_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/mutants"
)

// fenceMutants are places where the rule for readers is kept, each made wrong. old
// occurs once in the file. The random schedules on the named store must find it.
var fenceMutants = []struct{ name, store, file, old, wrong string }{
	{"reads are checked against the highest of any", "gate", "gate.go",
		"		least = seen.writer\n", "		_ = seen.writer\n"},
	{"reads do not record themselves", "gate", "gate.go",
		"	seen.highest = max(seen.highest, token)\n", "	if !reads {\n		seen.highest = token\n	}\n"},
	{"writes are compared with writers alone", "gate", "gate.go",
		"	least := seen.highest\n", "	least := seen.writer\n"},
	{"writes do not count for readers", "gate", "gate.go",
		"		seen.writer = token\n", "		_ = token\n"},

	{"the reader's header is ignored", "http", "middleware.go",
		"			check = guard.CheckRead\n", "			_ = guard.CheckRead\n"},
	{"every request is a reader's", "http", "middleware.go",
		"	if reads {\n		ctx =", "	if guard, ok := m.guard.(ReadGuard); ok {\n		check = guard.CheckRead\n	}\n	if reads {\n		ctx ="},

	{"reads are checked against the highest of any", "sqlite", "dialect.go",
		`" WHERE " + c.highestWriter("guard.") + " <= excluded.token"`, `" WHERE guard.token <= excluded.token"`},
	{"reads do not record themselves", "postgresql", "dialect.go",
		`	raised := c.highest("guard.", "excluded.token", "excluded.token")`, `	raised := "guard.token"`},
	{"writes are compared with writers alone", "postgresql", "dialect.go",
		`SET token = excluded.token WHERE guard.token <= excluded.token"`,
		`SET token = excluded.token WHERE COALESCE(guard.token_writer, guard.token) <= excluded.token"`},
	{"readers do not notice the writers", "sqlite", "dialect.go",
		`"COALESCE(CASE WHEN " + row + c.reader + " = " + row + c.token + " THEN " + row + c.writer + " END, "`,
		`"COALESCE(" + row + c.writer + ", "`},

	{"reads are checked against the highest of any", "mariadb", "dialect.go",
		`LAST_INSERT_ID(" + c.highestWriter("") + ")`, `LAST_INSERT_ID(token)`},
	{"reads do not record themselves", "mariadb", "dialect.go",
		`token = GREATEST(token, ?), "`, `token = COALESCE(token, ?), "`},
	{"writes are compared with writers alone", "mariadb", "dialect.go",
		"GREATEST(LAST_INSERT_ID(token), ?)", "GREATEST(LAST_INSERT_ID(COALESCE(token_writer, token)), ?)"},

	{"reads are checked against the highest of any", "column in sqlite", "column.go",
		`" AND " + names.highestWriter("") + " <= "`, `" AND COALESCE(" + names.token + ", 0) <= "`},
	{"reads do not record themselves", "column in sqlite", "column.go",
		`names.token + " = " + names.highest("", c.dialect.place(1), c.dialect.place(2))`, `names.token + " = COALESCE(" + names.token + ", " + c.dialect.place(1) + "+0*" + c.dialect.place(2) + ")"`},
	{"writes are compared with writers alone", "column in sqlite", "column.go",
		`return "COALESCE(" + c.dialect.quote(c.token) + ", 0) <= "`, `return c.dialect.columns(c.token).highestWriter("") + " <= "`},

	{"reads are checked against the highest of any", "goredis, RESP3", "lua/fence.lua",
		"== highest then writer =", "== highest then local _ ="},
	{"reads do not record themselves", "goredis, RESP3", "lua/fence.lua",
		"  redlatch_fence_set(key, highest, retention)\n", ""},
	{"readers do not notice the writers", "goredis, RESP3", "lua/fence.lua",
		"if left and string.sub(left, 1, 20) == highest then", "if left then"},
	{"writes are not compared", "goredis, RESP3", "lua/fence.lua",
		"if highest and token < highest then return highest end", ""},
}

// TestEveryMutantOfTheRuleIsFound applies each mutant to a copy of its file.
func TestEveryMutantOfTheRuleIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the code anew for every mutant")
	}
	const test = "TestStaleReadersAndWritersAreRefusedAndNoOthers"
	for _, m := range fenceMutants {
		edit := mutants.Edit{Name: m.store + ": " + m.name, File: "fence/" + m.file, Old: m.old, New: m.wrong}
		if !strings.Contains(edit.Name, os.Getenv("REDLATCH_MUTANT")) {
			continue
		}
		t.Run(edit.Name, func(t *testing.T) {
			binary := mutants.Build(t, []mutants.Edit{edit}, "./test/stores/fence", "test -c -ldflags=-s")[edit.Name]
			if binary == "" {
				return
			}
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			// Without a file of the failure: it fails on purpose.
			run := exec.CommandContext(ctx, binary, "-test.run", "^"+test+"$/^"+strings.ReplaceAll(m.store, " ", "_")+"$", "-rapid.nofailfile", "-rapid.shrinktime=1ms", "-rapid.checks=1000")
			run.Dir = filepath.Dir(binary)
			out, err := run.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "breaks the rule: ") {
				t.Errorf("it is not found: %v\n%s", err, out)
			}
		})
	}
}
