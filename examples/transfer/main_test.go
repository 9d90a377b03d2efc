//go:build unix

package main

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/processes"
)

func TestMain(m *testing.M) { processes.Main(m, main) }

// bank is a database that the test's processes share.
type bank struct {
	*testing.T
	env  []string
	path string
}

func (b *bank) start(from, to int, more ...string) *processes.Process {
	args := []string{"-db", b.path, "-from", fmt.Sprint(from), "-to", fmt.Sprint(to)}
	return processes.Start(b, fmt.Sprintf("from %d to %d", from, to), b.env, append(args, more...)...)
}

// expect checks the balances.
func (b *bank) expect(want ...int) {
	b.Helper()
	db, err := sql.Open("sqlite", "file:"+b.path+"?_pragma=busy_timeout(10000)")
	check.Must(b, err)
	defer db.Close()
	for i, n := range want {
		var got int
		if err := db.QueryRow("SELECT balance FROM accounts WHERE id = ?", i+1).Scan(&got); err != nil || got != n {
			b.Errorf("account %d has %d, %v; want %d", i+1, got, err, n)
		}
	}
}

// With locks taken in the order of the arguments these wait for each other; with
// no locks some transfers are lost.
func TestTransfersInEveryDirectionEndAndLoseNothing(t *testing.T) {
	_, env := processes.Quorum(t, 3)
	b := &bank{t, env, filepath.Join(t.TempDir(), "bank.db")}
	var all []*processes.Process
	for _, way := range [][3]int{{1, 2, 1}, {2, 1, 2}, {2, 3, 3}, {3, 2, 4}, {3, 1, 5}, {1, 3, 6}} {
		all = append(all, b.start(way[0], way[1], "-amount", fmt.Sprint(way[2]), "-times", "10"))
	}
	for _, p := range all {
		p.Ends(0)
	}
	b.expect(1000+10*(-1+2+5-6), 1000+10*(1-2-3+4), 1000+10*(3-4-5+6))
}
