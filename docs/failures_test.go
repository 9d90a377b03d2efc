// Package docs_test checks what the documentation says of the tests.
package docs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/check"
)

// scenarios are those that the catalogue must have, whatever else it has.
var scenarios = []string{
	"Master lost before replication",
	"A node restarts empty",
	"AOF everysec and power loss",
	"All restart",
	"Majority down",
	"Minority frozen",
	"Network partition of a client",
	"Network partition of a node",
	"One-way partition",
	"Client paused past its TTL",
	"Clock jumps forward on a client",
	"Clock jumps back on a client",
	"Clock jumps forward on a node",
	"Clock jumps back on a node",
	"Drift beyond the margin",
	"Late SET after the client gave up",
	"Lost reply",
	"Release racing re-acquisition",
	"Extension racing expiry",
	"Eviction",
	"FLUSHALL",
	"SCRIPT FLUSH",
	"Read-only replica answering",
	"LOADING",
	"MISCONF",
	"OOM",
	"Failover behind one DNS name",
	"Membership changed",
	"Pool exhausted",
	"Slow script",
	"TLS failures",
	"ACL failures",
}

func catalogue(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testing/failures.md")
	check.Must(t, err)
	return string(text)
}

func TestEveryRowOfTheCatalogueHasATestThatRuns(t *testing.T) {
	text := catalogue(t)
	for _, wrong := range newTree("..").check(text, scenarios) {
		t.Error("testing/failures.md: " + wrong)
	}
	if rows, _ := readCatalogue(text); len(rows) < len(scenarios) {
		t.Errorf("the catalogue has %d rows, and there are %d scenarios", len(rows), len(scenarios))
	}
}

// TestDoctoredCataloguesAreFoundOut breaks the catalogue itself, one way at a
// time.
func TestDoctoredCataloguesAreFoundOut(t *testing.T) {
	text, source := catalogue(t), newTree("..")
	for _, c := range []struct{ name, before, after, want string }{
		{"a row without a test", "| `store/redis`: `TestForgottenScriptsAreSentAgain`, `TestNobodyIsStarvedInTrouble` |", "| |", "SCRIPT FLUSH has no test"},
		{"a test in words", "`store/redis`: `TestFailoverBehindOneNameDoesNotLetASecondHolderIn`", "by hand", "which is not of the form"},
		{"a test that is not there", "`TestFailoverBehindOneNameDoesNotLetASecondHolderIn`", "`TestFailoverBehindOneNameIsFine`", "there is no test store/redis.TestFailoverBehindOneNameIsFine"},
		{"a test of another package", "`fence`: `TestPausedHolderIsRefusedByEveryStore`", "`sqlite`: `TestPausedHolderIsRefusedByEveryStore`", "there is no test sqlite.TestPausedHolderIsRefusedByEveryStore"},
		{"a row less", "\n| **Lost reply**", "\n| **Lost parcel**", "there is no row for: Lost reply"},
		{"a row twice", "\n| **Minority down**", "\n| **Majority down**", "Majority down is there twice"},
		{"a cell less", "| **Eviction** of a lock, on a server with another policy than `noeviction` |", "|", "it has 3 cells"},
		{"nothing for the user", "| Nothing: the scripts are sent again |", "| |", "does not say what a user sees"},
		{"another table", "## Clocks\n\n" + columns, "## Clocks\n\n| what | where |", "the head of the table is"},
		{"no name", "| **OOM**:", "| OOM:", "does not begin with a name in bold"},
	} {
		doctored := strings.Replace(text, c.before, c.after, 1)
		if doctored == text {
			t.Errorf("%s: %q is not in the catalogue any more", c.name, c.before)
			continue
		}
		if wrong := strings.Join(source.check(doctored, scenarios), "\n"); !strings.Contains(wrong, c.want) {
			t.Errorf("%s is not found out: %q", c.name, wrong)
		}
	}
}

// TestTestsThatDoNotRunAreFoundOut has a catalogue name tests of a folder made
// for the purpose.
func TestTestsThatDoNotRunAreFoundOut(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"good_test.go":          "func TestGood(t *testing.T) {}\nfunc TestNamed(x *testing.T) {}",
		"short_test.go":         "func TestShort(t *testing.T) { if testing.Short() { t.Skip(\"long\") } }",
		"else_test.go":          "func TestElse(t *testing.T) { if testing.Short() { t.Log() } else { t.Skip() } }",
		"skip_test.go":          "func TestSkip(t *testing.T) { t.Skip(\"later\") }",
		"skipf_test.go":         "func TestSkipf(t *testing.T) { if true { t.Skipf(\"%d\", 1) } }",
		"skipnow_test.go":       "func TestSkipNow(t *testing.T) { func() { t.SkipNow() }() }",
		"helper_test.go":        "func TestHelper(t *testing.T) {}\nfunc need(t testing.TB) { t.Skip() }",
		"where_windows_test.go": "func TestWindows(t *testing.T) {}",
		"where_linux_test.go":   "func TestLinux(t *testing.T) {}",
		"tag_test.go":           "//go:build never\n\npackage x\n\nimport \"testing\"\n\nfunc TestTag(t *testing.T) {}",
		"unix_test.go":          "//go:build unix && !race\n\npackage x\n\nimport \"testing\"\n\nfunc TestUnix(t *testing.T) {}",
		"odd_test.go":           "type s struct{}\nfunc (s) TestMethod(t *testing.T) {}\nfunc TestMain(m *testing.M) {}\nfunc TestArguments(t *testing.T, n int) {}",
		"plain.go":              "func TestPlain(t *testing.T) {}",
		"comment_test.go":       "// func TestComment(t *testing.T) {}",
	} {
		if !strings.Contains(text, "package x") {
			text = "package x\n\nimport \"testing\"\n\n" + text
		}
		check.Must(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	for name, want := range map[string]string{
		"TestGood": "", "TestNamed": "", "TestShort": "", "TestLinux": "", "TestUnix": "",
		"TestElse": "skips tests", "TestSkip": "skips tests", "TestSkipf": "skips tests", "TestSkipNow": "skips tests", "TestHelper": "skips tests",
		"TestWindows": "not built on Linux", "TestTag": "not built on Linux",
		"TestMethod": "there is no test", "TestMain": "there is no test", "TestArguments": "there is no test",
		"TestPlain": "there is no test", "TestComment": "there is no test",
	} {
		wrong := strings.Join(newTree(root).check(columns+"\n|---|---|---|---|\n| **It** | a | b | `"+name+"` |\n", []string{"It"}), "\n")
		if want == "" && wrong != "" || !strings.Contains(wrong, want) {
			t.Errorf("%s: got %q, want %q", name, wrong, want)
		}
	}
}
