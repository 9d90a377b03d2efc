//go:build unix

package fence_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redlatch/redlatch/fence"
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
			a.signal(t, syscall.SIGSTOP)

			// B gets the lock as soon as A's lease has expired.
			b := startHolder(t, config)
			if b.token <= a.token {
				t.Fatalf("B has token %d, A %d", b.token, a.token)
			}
			if got := b.write(t, "B's"); !all(got, "written") {
				t.Fatalf("B, holding the lock: %v", got)
			}

			a.signal(t, syscall.SIGCONT)
			outcome, left := a.write(t, "A's second"), rows(t)
			if len(outcome) != 8 || len(left) != 8 {
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
	cmd   *exec.Cmd
	token uint64
	in    io.Writer
	out   *bufio.Reader
	err   *strings.Builder
}

// startHolder returns when the process has the lock.
func startHolder(t *testing.T, c holderConfig) *holder {
	t.Helper()
	config, err := json.Marshal(c)
	must(t, err)
	h := &holder{cmd: exec.Command(os.Args[0]), err: &strings.Builder{}}
	h.cmd.Env = append(os.Environ(), holderEnv+"="+string(config))
	h.cmd.Stderr = h.err
	in, err1 := h.cmd.StdinPipe()
	out, err2 := h.cmd.StdoutPipe()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	h.in, h.out = in, bufio.NewReader(out)
	must(t, h.cmd.Start())
	t.Cleanup(func() {
		h.cmd.Process.Signal(syscall.SIGCONT)
		h.cmd.Process.Kill()
		h.cmd.Wait()
	})
	if _, err := fmt.Sscan(h.line(t), &h.token); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *holder) line(t *testing.T) string {
	t.Helper()
	line, err := h.out.ReadString('\n')
	if err != nil {
		h.cmd.Wait()
		t.Fatalf("a holder ended: %v: %s", err, h.err)
	}
	return line
}

// write has the process write a text to every store, and returns the results.
func (h *holder) write(t *testing.T, text string) map[string]string {
	t.Helper()
	if _, err := fmt.Fprintln(h.in, text); err != nil {
		t.Fatal(err)
	}
	outcome := map[string]string{}
	must(t, json.Unmarshal([]byte(h.line(t)), &outcome))
	return outcome
}

func (h *holder) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	must(t, h.cmd.Process.Signal(sig))
}
