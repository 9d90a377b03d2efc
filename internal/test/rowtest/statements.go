//go:build unix

package rowtest

import (
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/node"
)

// blocked has another transaction keep the row of a lock that is held, while a
// request of its holder writes it. The request must fail, and the lock is held as
// before.
func (h Harness) blocked(t *testing.T, settings Settings, op node.Op, limit time.Duration, meanwhile func(n node.Node, db *sql.DB)) {
	_, n, db := h.open(t, settings)
	eventually(t, n, request(node.OpAcquire, "first"))
	tx, err := db.Begin()
	check.Must(t, err)
	defer tx.Rollback()
	_, err = tx.Exec(h.LockRow, []byte("job"))
	check.Must(t, err)
	answer := make(chan error, 1)
	go func() { answer <- within(t, n, request(op, "first"), limit) }()
	// MariaDB shows what was so when it was last asked, if that was just now.
	for waiting := 0; waiting == 0 && len(answer) == 0; time.Sleep(150 * time.Millisecond) {
		check.Must(t, db.QueryRow(h.Waiting).Scan(&waiting))
	}
	meanwhile(n, db)
	if <-answer == nil {
		t.Error("a request whose row was kept has an answer")
	}
	tx.Rollback()
	stillHeld(t, n)
	want(t, n, request(node.OpRelease, "first"), node.Granted)
}

// sessionKilled: whether the request was executed is not known. It was not, and
// nothing is left of it.
func sessionKilled(t *testing.T, h Harness) {
	h.blocked(t, Settings{}, node.OpRelease, patience, func(_ node.Node, db *sql.DB) { h.KillWaiting(t, db) })
}

// rowKept: other names are not held up.
func rowKept(t *testing.T, h Harness) {
	h.blocked(t, Settings{}, node.OpExtend, 500*time.Millisecond, func(n node.Node, _ *sql.DB) {
		other := request(node.OpAcquire, "first")
		other.Name = "other"
		want(t, n, other, node.Granted)
	})
}

func timedOut(t *testing.T, h Harness) {
	h.blocked(t, Settings{Timeout: 300 * time.Millisecond}, node.OpRelease, patience, func(node.Node, *sql.DB) {})
}

// serialized has many contend for one name. The server refuses some of their
// transactions; no caller sees that.
func serialized(t *testing.T, h Harness) {
	server := h.Start(t)
	var holders atomic.Int32
	var all sync.WaitGroup
	for i := range 4 {
		n := h.node(t, server.DSN(), Settings{Serializable: true})
		all.Go(func() {
			for j := range 5 {
				value := fmt.Sprintf("%d-%d", i, j)
				for do(t, n, request(node.OpAcquire, value)).Status != node.Granted {
					time.Sleep(time.Millisecond)
				}
				if in := holders.Add(1); in > 1 {
					exclusion.Never(t, "%d hold the lock", in)
				}
				time.Sleep(time.Millisecond)
				holders.Add(-1)
				want(t, n, request(node.OpRelease, value), node.Granted)
			}
		})
	}
	all.Wait()
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
