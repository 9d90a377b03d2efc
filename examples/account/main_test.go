//go:build unix

package main

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/processes"
)

func TestMain(m *testing.M) { processes.Main(m, main) }

func TestWriterThatWasPausedIsRefused(t *testing.T) {
	env, db := processes.File(t), filepath.Join(t.TempDir(), "accounts.db")
	start := func(name string) *processes.Process {
		return processes.Start(t, name, env, "-db", db, "-ttl", "2s")
	}
	a := start("A")
	a.Line("the balance is 100;")
	a.Signal(syscall.SIGSTOP)

	b := start("B")
	b.Line("the balance is 100;")
	b.Type("70")
	b.Line("written: 70")
	if code := b.Wait(); code != 0 {
		t.Errorf("B exits with %d: %s", code, b.Said())
	}

	a.Type("150")
	a.Signal(syscall.SIGCONT)
	a.Line("nothing is written, the account was changed by another meanwhile")
	if code := a.Wait(); code != 1 {
		t.Errorf("A exits with %d: %s", code, a.Said())
	}
	c := start("C")
	c.Line("the balance is 70;")
}

func TestWriterThatWasPausedWritesIfNobodyElseDid(t *testing.T) {
	t.Setenv("REDLATCH_NODES", "")
	t.Setenv("REDLATCH_STATE_DIR", t.TempDir())
	a := processes.Start(t, "A", nil, "-db", filepath.Join(t.TempDir(), "accounts.db"), "-ttl", "2s")
	a.Line("the balance is 100;")
	a.Signal(syscall.SIGSTOP)

	// The client that gets the lock now knows that A has lost it.
	locks, err := redlatch.Open("sqlite:", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	if _, err := locks.Lock(t.Context(), "account/1", nil); err != nil {
		t.Fatal(err)
	}
	a.Type("150")
	a.Signal(syscall.SIGCONT)
	a.Line("written: 150")
}

func TestNobodyElseReadsWhileTheLockIsHeld(t *testing.T) {
	env, db := processes.File(t), filepath.Join(t.TempDir(), "accounts.db")
	a := processes.Start(t, "A", env, "-db", db)
	a.Line("the balance is 100;")
	b := processes.Start(t, "B", env, "-db", db)
	a.Type("70")
	a.Line("written: 70")
	b.Line("the balance is 70;")
}
