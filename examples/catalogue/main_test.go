//go:build unix

package main

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/processes"
	"github.com/redlatch/redlatch/node"
)

func TestMain(m *testing.M) { processes.Main(m, main) }

// starter returns functions that start readers and writers of one catalogue.
func starter(t *testing.T, env []string) (reader, writer func(name string) *processes.Process) {
	db := filepath.Join(t.TempDir(), "catalogue.db")
	start := func(name string, more ...string) *processes.Process {
		return processes.Start(t, name, env, append([]string{"-db", db, "-ttl", "2s"}, more...)...)
	}
	return func(name string) *processes.Process { return start(name) },
		func(name string) *processes.Process { return start(name, "-rewrite") }
}

// finish types an answer, and waits for what comes of it.
func finish(t *testing.T, p *processes.Process, answer, want string) {
	t.Helper()
	p.Type(answer)
	if want != "" {
		p.Line(want)
	}
	p.Ends(0)
}

func TestReadersReadTogetherAndTheWriterComesInOrder(t *testing.T) {
	_, env := processes.Quorum(t, 3)
	reader, writer := starter(t, env)
	var readers []*processes.Process
	for i := range 3 {
		readers = append(readers, reader(fmt.Sprint("reader ", i)))
	}
	for _, r := range readers {
		r.Line("edition 1: the price is 300; how many?") // all at once: none has ended
	}
	w := writer("writer")
	processes.Waiting(t, env, "catalogue", 1)
	late := reader("late reader")
	processes.Waiting(t, env, "catalogue", 2)
	for i, r := range readers {
		finish(t, r, fmt.Sprint(i+1), fmt.Sprintf("ordered %d at 300", i+1))
	}
	w.Line("the price is 300; the new one?")
	w.Type("350")
	w.Line("written: edition 2, price 350")

	// The writer is a reader now, and holds the lock with the one that waited.
	late.Line("edition 2: the price is 350; how many?")
	next := writer("next writer")
	look := processes.Waiting(t, env, "catalogue", 1)
	// A node that the downgrade had not reached yet refused the reader, which two
	// others let in: its next extension repairs that.
	for end := time.Now().Add(time.Minute); len(look.Holders) < 2 && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		look = processes.Waiting(t, env, "catalogue", 1)
	}
	if len(look.Holders) != 2 || look.Holders[0].Mode != node.Shared || look.Holders[1].Mode != node.Shared {
		t.Errorf("it is held by %+v, want two readers", look.Holders)
	}
	finish(t, late, "1", "ordered 1 at 350")
	finish(t, w, "", "")
	next.Line("the price is 350; the new one?")
}

func TestWriterThatWasPausedIsRefusedAfterAReader(t *testing.T) {
	reader, writer := starter(t, processes.File(t))
	w := writer("paused writer")
	w.Line("the price is 300; the new one?")
	w.Signal(syscall.SIGSTOP)
	r := reader("reader")
	r.Line("edition 1: the price is 300; how many?")
	w.Type("999")
	w.Signal(syscall.SIGCONT)
	w.Line("nothing is written, this process was paused for too long")
	w.Ends(1)
	finish(t, r, "2", "ordered 2 at 300")
	reader("another").Line("edition 1: the price is 300; how many?")
}
