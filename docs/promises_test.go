// Package docs_test compares the documentation with the code and with the tests.
package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/check"
)

// scenarios are those that the catalogue of failures must have, whatever else
// it has.
var scenarios = []string{
	"Master lost before replication", "A node restarts empty", "AOF everysec and power loss", "All restart",
	"Majority down", "Minority frozen",
	"Network partition of a client", "Network partition of a node", "One-way partition",
	"Client paused past its TTL",
	"Clock jumps forward on a client", "Clock jumps back on a client", "Clock jumps forward on a node", "Clock jumps back on a node",
	"Drift beyond the margin",
	"Late SET after the client gave up", "Lost reply", "Release racing re-acquisition", "Extension racing expiry",
	"Eviction", "FLUSHALL", "SCRIPT FLUSH", "Read-only replica answering", "LOADING", "MISCONF", "OOM",
	"Failover behind one DNS name", "Membership changed", "Pool exhausted", "Slow script", "TLS failures", "ACL failures",
}

// pages returns the index of the tests, and the pages that it names.
func pages(t *testing.T) (index string, text map[string]string) {
	t.Helper()
	text = map[string]string{}
	each(t, ".", ".md", func(path, of string) { text[filepath.ToSlash(path)] = of })
	of, err := os.ReadFile("testing/promises.txt")
	check.Must(t, err)
	return string(of), text
}

func TestEveryPromiseAndEveryFailureHasTestsThatRun(t *testing.T) {
	index, text := pages(t)
	for _, wrong := range newTree("..").check(index, text) {
		t.Error("testing/promises.txt: " + wrong)
	}
	for _, s := range scenarios {
		if !slices.Contains(rows(text[failures]), s) {
			t.Errorf("%s has no row for: %s", failures, s)
		}
	}
	if n := len(rows(text[guarantees])); n < 18 {
		t.Errorf("found %d promises: this looked in the wrong place", n)
	}
}

// TestTestsAreNamedInTheIndexAlone keeps the pages free of names that nobody
// reads, and that are wrong when a test is renamed.
func TestTestsAreNamedInTheIndexAlone(t *testing.T) {
	_, text := pages(t)
	named := regexp.MustCompile("`Test[A-Z][A-Za-z0-9]*`")
	for page, of := range text {
		if strings.HasPrefix(page, "testing/bench/") {
			continue // written by the bench
		}
		for _, name := range named.FindAllString(of, -1) {
			t.Errorf("%s names %s, which belongs in testing/promises.txt", page, name)
		}
	}
}

// TestDoctoredIndexesAreFoundOut breaks the index and the pages, one way at a
// time.
func TestDoctoredIndexesAreFoundOut(t *testing.T) {
	index, text := pages(t)
	source := newTree("..")
	if wrong := source.check(index, map[string]string{failures: "| **Lost parcel** | |"}); !slices.Contains(wrong, failures+": a cell of Lost parcel is empty") {
		t.Errorf("an empty cell is not found out: %q", wrong)
	}
	for _, c := range []struct{ name, before, after, want string }{
		{"a failure without an entry", "testing/failures.md: SCRIPT FLUSH", "testing/failures.md: FLUSHALL", "testing/failures.md: SCRIPT FLUSH is not there"},
		{"a promise without an entry", "guarantees.md: Downgrade\n", "guarantees.md: Limits\n", "guarantees.md: Downgrade is not there"},
		{"an entry without a test", "guarantees.md: LockAll\n", "guarantees.md: LockAll\nguarantees.md: Marking\n", "LockAll has no test"},
		{"an entry twice", "testing/failures.md: Minority down", "testing/failures.md: Majority down", "Majority down is there twice"},
		{"a title of nothing", "guarantees.md: LockAll", "guarantees.md: LockNone", "guarantees.md has no LockNone"},
		{"a page that is not there", "guarantees.md: LockAll", "promises.md: LockAll", "promises.md has no LockAll"},
		{"a test that is not there", "stores/redis TestClientsWithAnotherMembershipAreRefused", "stores/redis TestClientsAreFine", "there is no test test/stores/redis TestClientsAreFine"},
		{"a test of another package", "test/stores/fence TestAPausedTransactionCannotOverwrite", "fence TestAPausedTransactionCannotOverwrite", "there is no test fence TestAPausedTransactionCannotOverwrite"},
		{"a claim that is not there", `"one of many at once is granted"`, `"all of many at once are granted"`, `there is no test node/nodetest "all of many at once are granted"`},
		{"a test in words", "\ttest/stores/fence TestAPausedTransactionCannotOverwrite", "\tby hand", "there is no test by hand"},
	} {
		doctored := strings.Replace(index, c.before, c.after, 1)
		if doctored == index {
			t.Errorf("%s: %q is not in the index any more", c.name, c.before)
			continue
		}
		if wrong := strings.Join(source.check(doctored, text), "\n"); !strings.Contains(wrong, c.want) {
			t.Errorf("%s is not found out: %q", c.name, wrong)
		}
	}
}

// TestTestsThatDoNotRunAreFoundOut has an index name tests of a folder made for
// the purpose.
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
		wrong := strings.Join(newTree(root).check(guarantees+": It\n\t. "+name+"\n", map[string]string{guarantees: "It"}), "\n")
		if want == "" && wrong != "" || !strings.Contains(wrong, want) {
			t.Errorf("%s: got %q, want %q", name, wrong, want)
		}
	}
}
