package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/node"
)

func TestNoCharacterOfAPathIsTakenForAnOption(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a b", "a?mode=memory", "a%20b", "a#b", "ключ", "a&b=c", "file:x"} {
		if runtime.GOOS == "windows" && strings.ContainsAny(name, "?:") {
			continue
		}
		path := filepath.Join(dir, name)
		n := mustOpen(t, path, systemTime())
		if n.String() != "sqlite:"+path {
			t.Errorf("String is %q, want the path %q", n, path)
		}
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("%q is not where the file was made: %v", name, err)
		}
	}
}

func TestAFileThatCannotBeUsedIsExplained(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "plain")
	must(t, os.WriteFile(file, []byte(strings.Repeat("no database\n", 100)), 0o600))
	foreign := filepath.Join(dir, "foreign.db")
	alter(t, foreign, `PRAGMA application_id = 1`)
	older := filepath.Join(dir, "older.db")
	alter(t, older, `PRAGMA user_version = 3`)
	newer := filepath.Join(dir, "newer.db")
	alter(t, newer, `PRAGMA user_version = 8`)

	for path, says := range map[string]string{
		dir:                             "is a folder",
		file:                            "not a database",
		filepath.Join(file, "locks.db"): "plain",
		foreign:                         "another program",
		older:                           "has format 3 and this release knows 7: when no process uses it, remove it",
		newer:                           "has format 8 and this release knows 7: upgrade",
	} {
		refused(t, path, says)
	}
}

func TestAFullDiskIsExplainedAndHasNoEffect(t *testing.T) {
	n := mustOpen(t, filepath.Join(t.TempDir(), "locks.db"), systemTime())
	pragma(t, n, `PRAGMA max_page_count = 1`) // as many as it has
	fill := strings.Repeat("x", 400)
	var err error
	var req node.Request
	for i := 0; err == nil && i < 1000; i++ {
		req = request(node.OpAcquire, fmt.Sprint(fill, i), "one")
		_, err = n.Do(context.Background(), req)
	}
	if !errors.Is(err, node.ErrUnsent) || !strings.Contains(err.Error(), "free some space") {
		t.Fatalf("with no space left: %v", err)
	}
	pragma(t, n, `PRAGMA max_page_count = 1000000`)
	want(t, n, request(node.OpInspect, req.Name, ""), node.Absent)
	want(t, n, req, node.Granted)
}

func TestAFileThatMayNotBeWrittenIsExplained(t *testing.T) {
	n := mustOpen(t, filepath.Join(t.TempDir(), "locks.db"), systemTime())
	pragma(t, n, `PRAGMA query_only = 1`)
	fails(t, n, request(node.OpAcquire, "name", "one"), "must be allowed to write")
}

func TestAClosedNodeSaysSo(t *testing.T) {
	n := mustOpen(t, filepath.Join(t.TempDir(), "locks.db"), systemTime())
	for range 2 {
		must(t, n.Close())
	}
	fails(t, n, request(node.OpAcquire, "name", "one"), "is closed")
}

// alter makes a lock file and then changes it by a statement.
func alter(t *testing.T, path, sql string) {
	t.Helper()
	n := mustOpen(t, path, systemTime())
	pragma(t, n, sql)
	must(t, n.Close())
}

func pragma(t *testing.T, n *Node, sql string) {
	t.Helper()
	_, err := n.store.db.ExecContext(context.Background(), sql)
	must(t, err)
}
