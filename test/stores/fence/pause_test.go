//go:build unix

package fence_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/internal/test/processes"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// TestPausedHolderIsRefusedByEveryStore runs two processes that take the same
// lock and write the same rows. A holds the lock and is stopped for longer than
// its lease; B acquires it and writes; A continues, and writes. Without fencing
// A's row remains, and B's write is lost.
func TestPausedHolderIsRefusedByEveryStore(t *testing.T) {
	for _, fenced := range []bool{true, false} {
		t.Run(fmt.Sprintf("fenced %t", fenced), func(t *testing.T) {
			config, rows := world(t, fenced)
			a := startHolder(t, config)
			if got := a.write(t, "A's first"); !all(got, "written") {
				t.Fatalf("A, holding the lock: %v", got)
			}
			a.Signal(syscall.SIGSTOP)

			// B gets the lock as soon as A's lease has expired.
			b := startHolder(t, config)
			if b.token <= a.token {
				t.Fatalf("B has token %d, A %d", b.token, a.token)
			}
			if got := b.write(t, "B's"); !all(got, "written") {
				t.Fatalf("B, holding the lock: %v", got)
			}

			a.Signal(syscall.SIGCONT)
			outcome, left := a.write(t, "A's second"), rows(t)
			if len(outcome) != 10 || len(left) != 10 {
				t.Fatalf("the stores are %v", outcome)
			}
			if !fenced {
				if !all(outcome, "written") || !all(left, "A's second") {
					t.Errorf("without fencing: %v, leaving %v: this test cannot fail", outcome, left)
				}
				return
			}
			if want := fmt.Sprint("stale after ", b.token); !all(outcome, want) {
				t.Errorf("A's late write: %v, want %q", outcome, want)
			}
			if !all(left, "B's") {
				t.Errorf("the rows: %v, want B's", left)
			}
		})
	}
}

// all reports whether every value is want.
func all(m map[string]string, want string) bool {
	for _, v := range m {
		if v != want {
			return false
		}
	}
	return len(m) > 0
}

// world sets up a lock and all the stores, and returns a function that reads
// the row in each.
func world(t *testing.T, fenced bool) (holderConfig, func(t *testing.T) map[string]string) {
	ctx := context.Background()
	lock := servertest.Redis(t, 1)[0]
	c := holderConfig{Fenced: fenced, Lock: resource, Nodes: []string{lock.URL()}, TTL: time.Second, SQL: map[string]sqlStore{}}

	readers := map[string]func() (string, error){}
	for _, d := range databases {
		// Both holders and the test share one address: a file for SQLite.
		dsn := d.dsn(t)
		d.dsn = func(testing.TB) string { return dsn }
		db := d.open(t)
		s := sqlStore{Driver: d.driver, DSN: dsn, Dialect: d.dialect, Guard: newTable(), Guarded: newTable(), Owned: newTable()}
		c.SQL[d.name] = s
		guard, err := fence.NewSQL(db, d.dialect, &fence.SQLOptions{Table: s.Guard})
		must(t, err)
		must(t, guard.Create(ctx))
		mustExec(t, db, "CREATE TABLE "+s.Guarded+" (id INT PRIMARY KEY, writer VARCHAR(20))")
		mustExec(t, db, "CREATE TABLE "+s.Owned+" (id INT PRIMARY KEY, writer VARCHAR(20), token BIGINT)")
		for name, table := range map[string]string{"guard row": s.Guarded, "token column": s.Owned} {
			mustExec(t, db, "INSERT INTO "+table+" (id) VALUES (1)")
			readers[d.name+", "+name] = func() (text string, err error) {
				err = db.QueryRow("SELECT writer FROM " + table + " WHERE id = 1").Scan(&text)
				return text, err
			}
		}
	}

	values := servertest.Redis(t, 1)[0]
	c.Redis = values.Addr()
	readers["redis"] = func() (string, error) { return values.Try("GET", "fence:{"+resource+"}:value") }

	row := &page{}
	var handler http.Handler = row
	if fenced {
		wrap, err := fence.Middleware(newGate(t), nil)
		must(t, err)
		handler = wrap(row)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c.HTTP = server.URL + "/" + resource
	readers["http"] = func() (string, error) { return row.get(), nil }

	return c, func(t *testing.T) map[string]string {
		t.Helper()
		rows := map[string]string{}
		for name, read := range readers {
			text, err := read()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			rows[name] = text
		}
		return rows
	}
}

// page is a row that is written by PUT.
type page struct {
	mu   sync.Mutex
	text string
}

func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = string(body)
}

func (p *page) get() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text
}

// holder is a process that holds the lock; see runHolder.
type holder struct {
	*processes.Process
	token uint64
}

// startHolder returns when the process has the lock.
func startHolder(t *testing.T, c holderConfig) *holder {
	t.Helper()
	config, err := json.Marshal(c)
	must(t, err)
	h := &holder{Process: processes.Start(t, "holder", nil, string(config))}
	if _, err := fmt.Sscanf(h.Line("token "), "token %d", &h.token); err != nil {
		t.Fatal(err)
	}
	return h
}

// write has the process write a text to every store, and returns the results.
func (h *holder) write(t *testing.T, text string) map[string]string {
	t.Helper()
	h.Type(text)
	outcome := map[string]string{}
	must(t, json.Unmarshal([]byte(h.Line("{")), &outcome))
	return outcome
}
