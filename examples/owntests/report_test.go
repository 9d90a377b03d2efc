package report

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/store/memory"
)

// newClient returns a client on the given nodes: another copy of the program,
// as far as the lock is concerned.
func newClient(t *testing.T, nodes []redlatch.Node) *redlatch.Client {
	locks, err := redlatch.New(nodes, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { locks.Close() })
	return locks
}

// Everything runs in virtual time: the second that Run waits takes no time.
func TestReportIsNotWrittenWhileAnotherCopyIsAtIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := memory.Nodes(1)
		if _, err := newClient(t, nodes).TryLock(t.Context(), "report", nil); err != nil {
			t.Fatal(err)
		}
		job := &Job{Locks: newClient(t, nodes), Write: func(context.Context, redlatch.Token) error {
			t.Error("written")
			return nil
		}}
		if err := job.Run(t.Context()); !errors.Is(err, ErrElsewhere) {
			t.Errorf("Run returns %v, want ErrElsewhere", err)
		}
	})
}

// Two of three nodes go down while the report is written. The lock cannot be
// extended; the work must have stopped when its time to live is over.
func TestWritingStopsWhenTheLockIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := memory.Nodes(3)
		job := &Job{Locks: newClient(t, nodes), Write: func(ctx context.Context, _ redlatch.Token) error {
			for _, n := range nodes[:2] {
				n.(*memory.Node).SetDown(errors.New("unplugged"))
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(time.Hour):
				return errors.New("wrote on without the lock")
			}
		}}
		began := time.Now()
		if err := job.Run(t.Context()); !errors.Is(err, redlatch.ErrLost) {
			t.Errorf("Run returns %v, want ErrLost", err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("the work went on for %v, longer than the lock", took)
		}
	})
}

// A copy that crashed leaves its lock behind: a lease that nobody extends is
// just that.
func TestReportIsWrittenAfterACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := memory.Nodes(3)
		crashed := redlatch.LockOptions{TTL: 800 * time.Millisecond, NoKeepAlive: true}
		if _, err := newClient(t, nodes).TryLock(t.Context(), "report", &crashed); err != nil {
			t.Fatal(err)
		}
		written := false
		job := &Job{Locks: newClient(t, nodes), Write: func(context.Context, redlatch.Token) error {
			written = true
			return nil
		}}
		if err := job.Run(t.Context()); err != nil || !written {
			t.Errorf("Run returns %v, written: %t", err, written)
		}
	})
}

// A copy that stood still for longer than its lock does not look at its
// context before it writes. The store refuses it, by its token.
func TestCopyThatWasPausedIsRefusedByTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := fence.NewGate(nil)
		if err != nil {
			t.Fatal(err)
		}
		nodes := memory.Nodes(3)
		paused := redlatch.LockOptions{TTL: 800 * time.Millisecond, NoKeepAlive: true}
		lease, err := newClient(t, nodes).TryLock(t.Context(), "report", &paused)
		if err != nil {
			t.Fatal(err)
		}
		job := &Job{Locks: newClient(t, nodes), Write: func(ctx context.Context, token redlatch.Token) error {
			return store.Check(ctx, "report", token)
		}}
		if err := job.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := store.Check(t.Context(), "report", lease.Token()); !errors.Is(err, fence.ErrStale) {
			t.Errorf("the late write gets %v, want ErrStale", err)
		}
	})
}
