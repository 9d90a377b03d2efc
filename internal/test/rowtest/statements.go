//go:build unix

package rowtest

import (
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
)

// blocked has another transaction keep the row while a request writes it.
func blocked(t *testing.T, h Harness, n node.Node, db *sql.DB, req node.Request, limit time.Duration, meanwhile func()) (*sql.Tx, error) {
	t.Helper()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tx.Rollback() })
	if _, err := tx.Exec(h.LockRow, []byte("job")); err != nil {
		t.Fatal(err)
	}
	answer := make(chan error, 1)
	go func() { answer <- within(t, n, req, limit) }()
	// MariaDB shows what was so when it was last asked, if that was just now.
	for waiting := 0; waiting == 0 && len(answer) == 0; time.Sleep(150 * time.Millisecond) {
		if err := db.QueryRow(h.Waiting).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	meanwhile()
	return tx, <-answer
}

func sessionKilled(t *testing.T, h Harness) {
	_, n, db := h.open(t, Settings{})
	want(t, n, request(node.OpAcquire, "first"), node.Granted)
	tx, err := blocked(t, h, n, db, request(node.OpRelease, "first"), patience, func() { h.KillWaiting(t, db) })
	if err == nil {
		t.Error("a request whose session was killed has an answer")
	}
	tx.Rollback()
	// Whether it was executed is not known. It was not, and nothing is left of it.
	stillHeld(t, n)
}

func rowKept(t *testing.T, h Harness) {
	_, n, db := h.open(t, Settings{})
	want(t, n, request(node.OpAcquire, "first"), node.Granted)
	tx, err := blocked(t, h, n, db, request(node.OpExtend, "first"), 500*time.Millisecond, func() {})
	if err == nil {
		t.Error("a request whose row was kept has an answer")
	}
	// Other names are not held up.
	other := request(node.OpAcquire, "first")
	other.Name = "other"
	want(t, n, other, node.Granted)
	tx.Rollback()
	want(t, n, request(node.OpRelease, "first"), node.Granted)
}

func timedOut(t *testing.T, h Harness) {
	_, n, db := h.open(t, Settings{Timeout: 300 * time.Millisecond})
	eventually(t, n, request(node.OpAcquire, "first"))
	tx, err := blocked(t, h, n, db, request(node.OpRelease, "first"), patience, func() {})
	if err == nil {
		t.Error("a statement that took too long has an answer")
	}
	tx.Rollback()
	stillHeld(t, n)
}

// serialized has many contend for one name. The server refuses some of their
// transactions; no caller sees that.
func serialized(t *testing.T, h Harness) {
	server := h.Start(t)
	count, in := 0, 0
	var mu sync.Mutex
	var all sync.WaitGroup
	const contenders, times = 4, 5
	for i := range contenders {
		n := h.node(t, server.DSN(), Settings{Serializable: true})
		all.Go(func() {
			for j := range times {
				req := request(node.OpAcquire, fmt.Sprintf("%d-%d", i, j))
				for {
					req.Token = node.Token(time.Now().UnixMicro())
					if do(t, n, req).Status == node.Granted {
						break
					}
					time.Sleep(time.Millisecond)
				}
				mu.Lock()
				if in++; in > 1 {
					t.Errorf("%d hold the lock", in)
				}
				count++
				mu.Unlock()
				time.Sleep(time.Millisecond)
				mu.Lock()
				in--
				mu.Unlock()
				req.Op = node.OpRelease
				do(t, n, req)
			}
		})
	}
	all.Wait()
	if count != contenders*times {
		t.Errorf("%d were served, want %d", count, contenders*times)
	}
}

func poolExhausted(t *testing.T, h Harness) {
	_, n, db := h.open(t, Settings{Pool: 1})
	want(t, n, request(node.OpAcquire, "first"), node.Granted)
	tx, err := blocked(t, h, n, db, request(node.OpExtend, "first"), 5*time.Second, func() {
		// The only connection waits for the row.
		if err := within(t, n, request(node.OpInspect, ""), 200*time.Millisecond); !errors.Is(err, node.ErrUnsent) {
			t.Errorf("without a free connection: %v, want one that is ErrUnsent", err)
		}
	})
	if err == nil {
		t.Error("a request whose row was kept has an answer")
	}
	tx.Rollback()
	stillHeld(t, n)
}

func diskFull(t *testing.T, h Harness) {
	_, n, db := h.open(t, Settings{})
	want(t, n, request(node.OpAcquire, "first"), node.Granted)
	mustExec(t, db, h.FillDisk...)
	if err := within(t, n, request(node.OpRelease, "first"), patience); !errors.Is(err, node.ErrUnsent) {
		t.Errorf("on a full disk: %v, want one that is ErrUnsent", err)
	}
	want(t, n, request(node.OpAcquire, "second"), node.Held) // it reads, and writes nothing
	mustExec(t, db, h.EmptyDisk...)
	want(t, n, request(node.OpRelease, "first"), node.Granted)
}
