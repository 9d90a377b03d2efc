package ui

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/poll"
)

// TestAnOutageShowsWhatWasKnown: without a quorum the page is not live. It shows
// the last locks that it knows, since when the nodes are away, and what that means.
// While a quorum is left, it is live, and says that no other node may fail.
func TestAnOutageShowsWhatWasKnown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	w.lock("job", redlatch.LockOptions{})
	f := follow(t, w.serve()+"/events")
	shows := func(what, id string, texts ...string) {
		t.Helper()
		f.until(what, func() bool { return containsAll(f.texts[id], texts...) })
	}
	live := func() {
		t.Helper()
		f.until("that it is live, and all is well", func() bool { return strings.Contains(f.texts["live"], ">live<") && f.texts["notice"] == "" })
		f.until("the lock", func() bool {
			return strings.Contains(f.list("locks"), ">job<") && !strings.Contains(f.list("locks"), "stale")
		})
	}
	live()
	shows("the summary", "summary", `<b>3 of 3</b> nodes in service`)
	w.down(errUnplugged, 0)
	shows("that a node is away", "notice", "2 of 3 nodes in service. Locks work; no further failure tolerated.", "unreachable since <time", "redlatch doctor</b> says why")
	f.shows("nodes", "no answer", "unplugged")
	if !containsAll(f.texts["live"], ">live<") || !containsAll(f.texts["summary"], `<b>2 of 3</b> nodes in service`) {
		t.Errorf("with a quorum the page is %s, %s", f.texts["live"], f.texts["summary"])
	}
	w.down(errUnplugged, 1)
	shows("the outage", "notice", "1 of 3 nodes reachable; quorum is 2.", "until 2 nodes answer: <b>redlatch doctor</b>", "the last expires at <time", "The restart guard is off")
	if n := strings.Count(f.texts["notice"], "unreachable since <time"); n != 2 {
		t.Errorf("%d nodes are unreachable since some time: %s", n, f.texts["notice"])
	}
	if live := f.texts["live"]; !strings.Contains(live, "not live: as of <time") || strings.Contains(live, ">live<") {
		t.Errorf("without a quorum the page is %s", live)
	}
	if list := f.list("locks"); !containsAll(list, `class="stale"`, `<span class="badge unknown">unknown</span>`, "/holder") {
		t.Errorf("the locks are %s", list)
	}
	if s := f.texts["summary"]; !containsAll(s, "<b>1</b> held", "as of <time") {
		t.Errorf("the summary is %s", s)
	}
	for away, says := range map[int]string{1: "only 1 of 3 nodes answer", 2: "the holders are shown as of"} {
		w.down(errUnplugged, 1, away)
		one := w.until("/lock?name=job", says)
		if !strings.Contains(one, "/holder") || strings.Contains(one, "Not held") || strings.Contains(one, "No waiters") {
			t.Errorf("with %d nodes away the page of the lock is %s", 1+away, one)
		}
		w.down(nil, away)
	}
	w.down(nil, 0, 1, 2)
	live()
	f.shows("lately", "back in service")
}

func containsAll(s string, texts ...string) bool {
	return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(s, text) })
}

// TestAPageThatBeginsInAnOutageKnowsNothing, and does not say that there are no
// locks. Nor does one that no node has answered yet.
func TestAPageThatBeginsInAnOutageKnowsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	w.down(errUnplugged, 0, 1, 2)
	body := w.until("/", "0 of 3 nodes reachable")
	if !strings.Contains(body, "Nothing is known yet.") || strings.Contains(body, "No locks") || strings.Contains(body, "held</span>") {
		t.Errorf("the page is %s", body)
	}
	w = newWorld(t, Options{})
	w.page.Close() // no survey is made any more
	if status, body, _ := w.get("/"); status != 200 || !containsAll(body, "The nodes have not answered yet", "No node has answered yet") {
		t.Errorf("%d: %s", status, body)
	}
}

// TestEndsOfLocksAreToldApart has one lock each that is released, broken, and
// forgotten by all nodes, and one that a single node forgets.
func TestEndsOfLocksAreToldApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	for _, name := range []string{"broken", "forgotten", "half"} {
		w.lock(name, redlatch.LockOptions{TTL: testPatience, NoKeepAlive: true})
		for _, n := range w.nodes { // a late grant is one after the break
			poll.Until(t, "every node has granted "+name, func() bool {
				l, err := n.Node.Look(t.Context(), name)
				return err == nil && len(l.Holders) == 1
			})
		}
	}
	released := w.lock("released", redlatch.LockOptions{})
	f := follow(t, w.serve()+"/events")
	f.until("four locks", func() bool { return len(f.orders["locks"]) == 4 })
	w.release(released)
	_, err := admin.New(w.holder).Break(t.Context(), "broken", nil)
	must(t, err)
	for _, n := range w.nodes {
		n.Drop("forgotten")
	}
	w.nodes[1].Drop("half")
	tags := regexp.MustCompile(`<[^>]*>`)
	lately := func() string { return tags.ReplaceAllString(f.list("lately"), "") }
	for _, want := range []string{
		"released released by", "broken broken; it was held by",
		"forgotten forgotten by memory:[^;]*; it was held by", "memory:2: forgot [12] lock", // a survey may come between two of them
	} {
		f.until(want, func() bool { return regexp.MustCompile(want).MatchString(lately()) })
	}
	if list := lately(); strings.Count(list, "released by") != 1 || strings.Contains(list, "no longer") {
		t.Errorf("the events are %s", list)
	}
	for path, want := range map[string]struct {
		text  string
		times int
	}{"/lock?name=half": {"not known here", 1}, "/lock?name=broken": {`<span class="warning">broken</span>`, 3}} {
		if body := w.until(path, want.text); strings.Count(body, want.text) != want.times {
			t.Errorf("%s is %s", path, body)
		}
	}
}
