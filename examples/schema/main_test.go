//go:build unix

package main

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/processes"
)

func TestMain(m *testing.M) { processes.Main(m, main) }

func TestCopiesThatStartTogetherTakeEachStepOnce(t *testing.T) {
	_, env := processes.Quorum(t, 3)
	db := filepath.Join(t.TempDir(), "shop.db")
	var copies []*processes.Process
	for i := range 6 {
		copies = append(copies, processes.Start(t, fmt.Sprint("copy ", i), env, "-db", db))
	}
	var said strings.Builder
	for _, c := range copies {
		c.Ends(0)
		fmt.Fprintln(&said, c.Said())
	}
	for text, want := range map[string]int{"step 1 is done": 1, "step 2 is done": 1, "step 3 is done": 1, "serving with schema 3": 6} {
		if n := strings.Count(said.String(), text); n != want {
			t.Errorf("%q is said %d times, want %d: %s", text, n, want, said.String())
		}
	}
}

func TestCopyThatIsKilledIsContinuedByTheNext(t *testing.T) {
	env, db := processes.File(t), filepath.Join(t.TempDir(), "shop.db")
	a := processes.Start(t, "A", env, "-db", db, "-ttl", "1s", "-slow", "1s")
	a.Line("step 1 is done")
	a.Signal(syscall.SIGKILL)
	b := processes.Start(t, "B", env, "-db", db)
	b.Line("step 2 is done")
	b.Line("step 3 is done")
	b.Line("serving with schema 3")
	if strings.Contains(b.Said(), "step 1") {
		t.Errorf("the step of the one that was killed is taken again: %s", b.Said())
	}
}

func TestCopyThatIsTooOldDoesNotServe(t *testing.T) {
	env, path := processes.File(t), filepath.Join(t.TempDir(), "shop.db")
	db, err := sql.Open("sqlite", path)
	check.Must(t, err)
	defer db.Close()
	if _, err := db.Exec("PRAGMA user_version = 4"); err != nil {
		t.Fatal(err)
	}
	a := processes.Start(t, "A", env, "-db", path)
	a.Line("the database has schema 4, and this version knows 3: it is too old")
	a.Ends(1)
}
