package ui

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/poll"
)

// TestAnOutageShowsWhatWasKnown: without a quorum the page is not live. It shows
// the last locks that it knows, since when the nodes are away, and what that means.
func TestAnOutageShowsWhatWasKnown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	w.lock("job", redlatch.LockOptions{})
	f := follow(t, w.serve()+"/events")
	f.until("that it is live", func() bool {
		return strings.Contains(string(f.texts["live"]), ">live<") && strings.Contains(f.list("locks"), ">job<") && f.texts["notice"] == ""
	})
	for i := range w.nodes {
		w.down(i)
	}
	f.until("the outage", func() bool {
		return strings.Contains(string(f.texts["notice"]), "0 of 3 nodes reachable; quorum is 2.")
	})
	if live := f.texts["live"]; !strings.Contains(string(live), "not live: as of <time") || strings.Contains(string(live), ">live<") {
		t.Errorf("without a node the page is %s", live)
	}
	if n := strings.Count(string(f.texts["notice"]), "unreachable since <time"); n != 3 {
		t.Errorf("%d nodes are unreachable since some time: %s", n, f.texts["notice"])
	}
	if !strings.Contains(string(f.texts["notice"]), "the last expires at <time") || !strings.Contains(string(f.texts["notice"]), "The restart guard is off") {
		t.Errorf("what it means for locks: %s", f.texts["notice"])
	}
	if list := f.list("locks"); !strings.Contains(list, `class="stale"`) || !strings.Contains(list, ">unknown<") || !strings.Contains(list, "/holder") {
		t.Errorf("the locks are %s", list)
	}
	if s := f.texts["summary"]; !strings.Contains(string(s), "<b>1</b> held") || !strings.Contains(string(s), "as of <time") {
		t.Errorf("the summary is %s", s)
	}
	one := w.until("/lock?name=job", "the holders are shown as of")
	if !strings.Contains(one, "/holder") || strings.Contains(one, "Not held") || strings.Contains(one, "No waiters") {
		t.Errorf("the page of the lock is %s", one)
	}
	for i := range w.nodes {
		w.up(i)
	}
	f.until("that it is live again", func() bool {
		return strings.Contains(string(f.texts["live"]), ">live<") && !strings.Contains(f.list("locks"), "stale") && f.texts["notice"] == ""
	})
}

// TestAPageThatBeginsInAnOutageKnowsNothing, and does not say that there are no
// locks.
func TestAPageThatBeginsInAnOutageKnowsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	for i := range w.nodes {
		w.down(i)
	}
	body := w.until("/", "0 of 3 nodes reachable")
	if !strings.Contains(body, "Nothing is known yet.") || strings.Contains(body, "No locks") || strings.Contains(body, "held</span>") {
		t.Errorf("the page is %s", body)
	}
}

// TestEndsOfLocksAreToldApart has one lock each that is released, broken, forgotten
// by all nodes, and left to expire, and one that a single node forgets.
func TestEndsOfLocksAreToldApart(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits until a lock of eight seconds has expired")
	}
	t.Parallel()
	w := newWorld(t, Options{})
	for _, name := range []string{"broken", "forgotten", "half"} {
		w.lock(name, redlatch.LockOptions{TTL: testPatience, NoKeepAlive: true})
	}
	released := w.lock("released", redlatch.LockOptions{})
	w.crash("expired", 8*time.Second)
	f := follow(t, w.serve()+"/events")
	f.until("five locks", func() bool { return len(f.orders["locks"]) == 5 })
	for _, name := range []string{"broken", "forgotten", "half"} { // a late grant is one after the break
		for _, n := range w.nodes {
			poll.Until(t, "every node has granted "+name, func() bool {
				l, err := n.Node.Look(t.Context(), name)
				return err == nil && len(l.Holders) == 1
			})
		}
	}
	w.release(released)
	if _, err := admin.New(w.holder).Break(t.Context(), "broken", nil); err != nil {
		t.Fatal(err)
	}
	for _, n := range w.nodes {
		n.Drop("forgotten")
	}
	w.nodes[1].Drop("half")
	tags := regexp.MustCompile(`<[^>]*>`)
	for _, want := range []string{
		"released released by", "broken broken; it was held by", "expired expired; it was held by",
		"forgotten forgotten by memory:[^;]*; it was held by", "memory:2 has forgotten [12] lock", // a survey may come between two of them
	} {
		is := regexp.MustCompile(want)
		f.until(want, func() bool { return is.MatchString(tags.ReplaceAllString(f.list("lately"), "")) })
	}
	if list := tags.ReplaceAllString(f.list("lately"), ""); strings.Count(list, "released by") != 1 || strings.Contains(list, "no longer") {
		t.Errorf("the events are %s", list)
	}
	if body := w.until("/lock?name=half", "not known here"); strings.Count(body, "not known here") != 1 {
		t.Errorf("the page of the lock is %s", body)
	}
	if body := w.until("/lock?name=broken", `<span class="warning">broken</span>`); strings.Count(body, `<span class="warning">broken</span>`) != 3 {
		t.Errorf("the page of the lock is %s", body)
	}
}
