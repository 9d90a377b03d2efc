//go:build unix

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/processes"
)

func TestMain(m *testing.M) { processes.Main(m, main) }

// partner is the other side: it carries out each key once, loses the first
// answer to every key, and notes who is there at the same time.
type partner struct {
	mu      sync.Mutex
	inside  int
	crowded bool
	keys    map[string]int // how often each was asked for
	charged map[string]int // by order
}

func (p *partner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key, order := r.Header.Get("Idempotency-Key"), r.FormValue("order")
	p.mu.Lock()
	p.inside++
	p.crowded = p.crowded || p.inside > 1
	p.mu.Unlock()
	time.Sleep(10 * time.Millisecond) // the work, in which others could come in
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inside--
	p.keys[key]++
	if p.keys[key] == 1 {
		p.charged[order]++
		panic(http.ErrAbortHandler) // done, and the answer is lost
	}
}

func TestPartnerIsCalledByOneAtATimeAndChargesOnce(t *testing.T) {
	p := &partner{keys: map[string]int{}, charged: map[string]int{}}
	server := httptest.NewServer(p)
	defer server.Close()
	env := processes.File(t)
	var all []*processes.Process
	for i := range 4 {
		all = append(all, processes.Start(t, fmt.Sprint("caller ", i), env, "-url", server.URL, fmt.Sprint("a", i), fmt.Sprint("b", i)))
	}
	for _, c := range all {
		if code := c.Wait(); code != 0 {
			t.Errorf("a caller exits with %d: %s", code, c.Said())
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.crowded {
		t.Error("the partner was called by two at the same time")
	}
	for i := range 4 {
		for _, order := range []string{fmt.Sprint("a", i), fmt.Sprint("b", i)} {
			if n := p.charged[order]; n != 1 {
				t.Errorf("order %s was charged %d times", order, n)
			}
		}
	}
	if len(p.keys) != 8 {
		t.Errorf("%d keys for 8 orders", len(p.keys))
	}
	for key, n := range p.keys {
		if n < 2 {
			t.Errorf("key %s was asked for once, though its first answer was lost", key)
		}
	}
}

func TestCallThatIsRefusedIsNotMadeAgain(t *testing.T) {
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls++
		http.Error(w, "no such order", http.StatusNotFound)
	}))
	defer server.Close()
	c := processes.Start(t, "caller", processes.File(t), "-url", server.URL, "a")
	if code := c.Wait(); code != 1 || !strings.Contains(c.Said(), "order a: refused: 404") {
		t.Errorf("exits with %d and says %q", code, c.Said())
	}
	server.Close()
	if calls != 1 {
		t.Errorf("%d calls", calls)
	}
}
