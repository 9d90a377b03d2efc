package ui

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/poll"
)

func TestTheStreamSendsThePageAndThenWhatChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	still := redlatch.LockOptions{TTL: time.Hour, NoKeepAlive: true} // no extension changes a row
	for i := range 250 {
		w.lock(fmt.Sprintf("job/%03d", i), still)
	}
	poll.Until(t, "the last answers of nodes, which change rows", func() bool {
		_, body, _ := w.get("/?q=JOB&page=2")
		return strings.Count(body, ">3/3<") == pageSize
	})
	f := follow(t, w.serve()+"/events?q=JOB&page=2")
	first := f.next()
	if n := len(first.Lists["locks"].Rows); n != pageSize {
		t.Errorf("the first message has %d rows", n)
	}
	if !strings.Contains(f.list("locks"), "job/100<") || strings.Contains(f.list("locks"), "job/099<") || !strings.Contains(f.texts["found"], "101 to 200 shown") {
		t.Errorf("it is another page: %s", f.texts["found"])
	}
	held := w.lock("job/150/more", still)
	for listed := false; !listed; {
		before := maps.Clone(f.rows)
		news := f.next().Lists["locks"]
		for id, html := range news.Rows { // the others change too where an answer was late
			if before[id] == string(html) {
				t.Errorf("a row was sent that did not change: %s", html)
			}
		}
		listed = news.Order != nil
	}
	if order := f.orders["locks"]; len(order) != pageSize || order[51] != idOf("l", "job/150/more") {
		t.Errorf("for one lock %d ids were sent: %v", len(order), order)
	}
	w.release(held)
	f.until("that it is gone", func() bool { return !strings.Contains(f.list("locks"), "job/150/more") })
}

func TestALockIsFollowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	f := follow(t, w.serve()+"/events?name=job")
	f.shows("holders", "Not held.")
	lease := w.lock("job", redlatch.LockOptions{TTL: 20 * time.Second})
	f.shows("holders", "/holder<")
	f.until("the command", func() bool { return strings.Contains(f.texts["command"], "redlatch break job<") })
	wait, cancel := context.WithCancel(t.Context())
	waiter, done := w.client("waiter", ""), make(chan struct{})
	go func() {
		defer close(done)
		waiter.Lock(wait, "job", nil)
	}()
	f.shows("waiters", "/waiter<", "the whole lock")
	cancel()
	<-done
	w.down(errUnplugged, 1)
	f.shows("answers", "unplugged")
	w.down(nil, 1)
	w.release(lease)
	f.shows("holders", "Not held.")
	f.shows("lately", "acquired by", "released by")
	if !strings.Contains(f.said, "acquired by") || !strings.Contains(f.said, "2: no answer") {
		t.Errorf("said was %q", f.said)
	}
}

func TestTheNodesAreAskedWhileSomebodyWatches(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	url := w.serve()
	lists := func() int64 { return w.nodes[0].lists.Load() }
	time.Sleep(300 * time.Millisecond)
	if n := lists(); n != 0 {
		t.Fatalf("asked %d times before anybody came", n)
	}
	f, g := follow(t, url+"/events"), follow(t, url+"/events?q=x")
	f.next()
	g.next()
	poll.Until(t, "a third survey", func() bool { return lists() >= 3 })
	if n := w.page.source.watching(); n != 2 {
		t.Errorf("%d watch", n)
	}
	f.leave()
	g.leave()
	poll.Until(t, "an end of the polling", func() bool {
		w.page.source.mu.Lock()
		defer w.page.source.mu.Unlock()
		return !w.page.source.polling && w.page.source.flight == nil
	})
	before := lists()
	time.Sleep(500 * time.Millisecond)
	if n := lists(); n != before {
		t.Errorf("asked %d times while nobody watched", n-before)
	}
}

// TestManyPagesShareASurvey: a storm of requests does not become one of
// surveys.
func TestManyPagesShareASurvey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{Interval: time.Hour})
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if status, _, _ := w.get("/"); status != 200 {
				t.Errorf("status %d", status)
			}
			w.get("/lock?name=job")
		})
	}
	all.Wait()
	if lists, looks := w.nodes[0].lists.Load(), w.nodes[0].looks.Load(); lists != 1 || looks != 1 {
		t.Errorf("a node was asked for all locks %d times, and for one %d times", lists, looks)
	}
}

func TestTheNumberOfViewersIsLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{MaxViewers: 2})
	url := w.serve()
	follow(t, url+"/events").next()
	second := follow(t, url+"/events")
	second.next()
	resp, body := fetch(t, url+"/events") // should it watch, until the test is over
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" || !strings.Contains(body, "2 are watching") {
		t.Errorf("the third gets %s, %s", resp.Status, body)
	}
	if status, _, _ := w.get("/"); status != 200 {
		t.Errorf("the page itself gets %d", status)
	}
	second.leave()
	poll.Until(t, "a free place", func() bool { return w.page.source.watching() == 1 })
	follow(t, url+"/events").next()
}

// TestASlowViewerDelaysNobody: one that reads nothing is left behind, and
// others are served.
func TestASlowViewerDelaysNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	for i := range pageSize {
		w.lock(fmt.Sprintf("job/%03d/%s", i, strings.Repeat("x", 400)), redlatch.LockOptions{})
	}
	url := w.serve()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	must(t, err)
	defer conn.Close()
	conn.(*net.TCPConn).SetReadBuffer(4096)
	fmt.Fprintf(conn, "GET /events HTTP/1.1\r\nHost: x\r\n\r\n") // and reads nothing
	f := follow(t, url+"/events?sort=since")
	f.next()
	lists := w.nodes[0].lists.Load()
	poll.Until(t, "ten more surveys", func() bool { return w.nodes[0].lists.Load() > lists+10 })
	w.lock("new", redlatch.LockOptions{})
	f.shows("lately", ">new<")
}

func TestCloseEndsAllWhoWatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	url := w.serve()
	f := follow(t, url+"/events")
	f.next()
	w.page.Close()
	w.page.Close()
	for open := true; open; {
		select {
		case <-f.news:
		case <-f.errs:
			open = false
		case <-time.After(testPatience):
			t.Fatal("the stream goes on")
		}
	}
	if resp, body := fetch(t, url+"/events"); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a new viewer gets %s, %s", resp.Status, body)
	}
	if status, _, _ := w.get("/"); status != 200 { // with what was known
		t.Errorf("the page gets %d", status)
	}
}
