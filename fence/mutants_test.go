//go:build unix

package fence_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// mutants are places where the rule for readers is kept, each made wrong. old
// occurs once in the file. The random schedules on the named store must find it.
var mutants = []struct{ name, store, file, old, wrong string }{
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
	only := os.Getenv("REDLATCH_MUTANT")
	for _, m := range mutants {
		name := m.store + ": " + m.name
		if !strings.Contains(name, only) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			if os.Getenv("REDLATCH_MUTANTS") != "all" {
				fits(t, m.file, m.old) // make mutants runs them
				return
			}
			binary := build(t, m.file, m.old, m.wrong)
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

// fits checks that a mutant changes one place of a file, and returns the file.
func fits(t *testing.T, file, old string) []byte {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), old); n != 1 {
		t.Fatalf("%s has %d places that read\n%s\nwant 1: has the code changed?", file, n, old)
	}
	return source
}

// build returns the tests of this package with one place of a file made wrong.
func build(t *testing.T, file, old, wrong string) (binary string) {
	t.Helper()
	path, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	source := fits(t, file, old)
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
	binary = filepath.Join(dir, "fence.test")
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("it does not compile: %v\n%s", err, out)
	}
	return binary
}
