package ui

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/memory"
)

var must = check.Must

// testPatience is how long the tests wait for what must happen.
const testPatience = 30 * time.Second

// counted is a node in memory that counts what it is asked.
type counted struct {
	*memory.Node
	lists, looks atomic.Int64
}

func (c *counted) List(ctx context.Context, prefix string, found func(node.Listing)) error {
	c.lists.Add(1)
	return c.Node.List(ctx, prefix, found)
}

func (c *counted) Look(ctx context.Context, name string) (node.Listing, error) {
	c.looks.Add(1)
	return c.Node.Look(ctx, name)
}

// world is a few nodes in memory, a client that holds locks, and a page.
type world struct {
	t      *testing.T
	nodes  []*counted
	holder *redlatch.Client
	page   *UI
}

func newWorld(t *testing.T, opts Options) *world {
	t.Helper()
	w := &world{t: t}
	for i := range 3 {
		w.nodes = append(w.nodes, &counted{Node: memory.New(&memory.Options{Name: fmt.Sprint(i + 1)})})
	}
	w.holder = w.client("holder", "")
	if opts.Interval == 0 {
		opts.Interval = 100 * time.Millisecond
	}
	page, err := New(w.client("page", ""), &opts)
	must(t, err)
	t.Cleanup(func() { page.Close() })
	w.page = page
	return w
}

// client returns a client of the nodes.
func (w *world) client(label, prefix string) *redlatch.Client {
	w.t.Helper()
	var nodes []redlatch.Node
	for _, n := range w.nodes {
		nodes = append(nodes, n)
	}
	c, err := redlatch.New(nodes, &redlatch.Options{Label: label, Prefix: prefix, Cluster: redlatch.Cluster{MaxTTL: time.Hour}})
	must(w.t, err)
	w.t.Cleanup(func() { c.Close() })
	return c
}

func (w *world) lock(name string, opts redlatch.LockOptions) *redlatch.Lease {
	w.t.Helper()
	lease, err := w.holder.Lock(w.t.Context(), name, &opts)
	must(w.t, err)
	return lease
}

func (w *world) release(l *redlatch.Lease) {
	w.t.Helper()
	must(w.t, l.Release(w.t.Context()))
}

// down has nodes answer with an error; nil brings them back.
func (w *world) down(err error, nodes ...int) {
	for _, i := range nodes {
		w.nodes[i].SetDown(err)
	}
}

var errUnplugged = errors.New("unplugged")

// get asks the page, and returns status, body and headers.
func (w *world) get(path string, change ...func(*http.Request)) (int, string, http.Header) {
	w.t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for _, c := range change {
		c(r)
	}
	rec := httptest.NewRecorder()
	w.page.ServeHTTP(rec, r)
	return rec.Code, rec.Body.String(), rec.Header()
}

// until waits until the page contains a text.
func (w *world) until(path, text string) (body string) {
	w.t.Helper()
	if !poll.Holds(testPatience, func() bool {
		_, body, _ = w.get(path)
		return strings.Contains(body, text)
	}) {
		w.t.Fatalf("%s does not show %q:\n%s", path, text, body)
	}
	return body
}

// serve serves the page.
func (w *world) serve(change ...func(*http.Server)) string {
	w.t.Helper()
	s := httptest.NewUnstartedServer(w.page)
	for _, c := range change {
		c(s.Config)
	}
	s.Start()
	w.t.Cleanup(func() {
		w.page.Close()
		s.Close()
	})
	return s.URL
}

// follower is a viewer that keeps the page as the script does.
type follower struct {
	t      *testing.T
	news   chan message
	errs   chan error
	texts  map[string]string
	orders map[string][]string
	rows   map[string]string
	said   string
	leave  func()
}

// follow begins to watch.
func follow(t *testing.T, url string) *follower {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	must(t, err)
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	t.Cleanup(func() {
		leave()
		resp.Body.Close()
	})
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("the events are %s, %s", resp.Status, resp.Header.Get("Content-Type"))
	}
	f := &follower{t: t, news: make(chan message, 1000), errs: make(chan error, 1), leave: leave,
		texts: map[string]string{}, orders: map[string][]string{}, rows: map[string]string{}}
	go func() {
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 10<<20)
		for lines.Scan() {
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok {
				continue
			}
			var m message
			if err := json.Unmarshal([]byte(data), &m); err != nil {
				f.errs <- err
				return
			}
			f.news <- m
		}
		f.errs <- errors.Join(lines.Err(), io.EOF)
	}()
	return f
}

// next takes the next message.
func (f *follower) next() message {
	f.t.Helper()
	select {
	case m := <-f.news:
		for id, text := range m.Texts {
			f.texts[id] = string(text)
		}
		for id, list := range m.Lists {
			if list.Order != nil {
				f.orders[id] = list.Order
			}
			for row, html := range list.Rows {
				f.rows[row] = string(html)
			}
		}
		f.said += m.Say + "\n"
		return m
	case err := <-f.errs:
		f.t.Fatalf("the events ended: %v", err)
	case <-time.After(testPatience):
		f.t.Fatal("nothing was sent")
	}
	panic("unreachable")
}

// list returns the rows of a list.
func (f *follower) list(id string) string {
	var b strings.Builder
	for _, row := range f.orders[id] {
		b.WriteString(f.rows[row])
	}
	return b.String()
}

// until takes messages until a condition holds.
func (f *follower) until(what string, is func() bool) {
	f.t.Helper()
	for end := time.Now().Add(testPatience); !is(); f.next() {
		if time.Now().After(end) {
			f.t.Fatalf("not seen: %s", what)
		}
	}
}

// shows waits until a list has all of the texts.
func (f *follower) shows(list string, texts ...string) {
	f.t.Helper()
	for _, text := range texts {
		f.until(text+" in "+list, func() bool { return strings.Contains(f.list(list), text) })
	}
}

// fetch returns an answer, and its body.
func fetch(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	resp, err := (&http.Client{Timeout: testPatience}).Get(url)
	must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp, string(body)
}

// watching returns how many viewers there are.
func (s *source) watching() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.viewers)
}
