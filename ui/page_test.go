package ui

import (
	"regexp"
	"strings"
	"testing"

	"github.com/redlatch/redlatch"
)

func TestTheListShowsHoldersReadersAndSlots(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	lease := w.lock("alone", redlatch.LockOptions{})
	for range 5 {
		c := w.client("reader", "")
		if _, err := c.Lock(t.Context(), "files", &redlatch.LockOptions{Shared: true}); err != nil {
			t.Fatal(err)
		}
	}
	w.lock("slots", redlatch.LockOptions{Slots: 3})
	body := w.until("/", "5 readers")
	plain := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(body, "|")
	for _, want := range []string{"1 of 3 slots", "slot 0", "and 2 more", tokenText(lease.Token()), "3 of 3|", "in service", "/holder"} {
		if !strings.Contains(plain, want) {
			t.Errorf("the page has no %q: %s", want, plain)
		}
	}
	if n := strings.Count(body, "<bdi>"+"") - strings.Count(body, "</bdi>"); n != 0 {
		t.Errorf("%d elements are not closed", n)
	}
	one := w.until("/lock?name=files", "by 5 holders together")
	if n := strings.Count(one, `<span class="badge">reader</span>`); n != 5 {
		t.Errorf("the page of the lock shows %d readers", n)
	}
}

func TestThePageSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	w.lock("job", redlatch.LockOptions{})
	w.until("/", `<b>3 of 3</b> nodes in service`)
	w.down(0)
	body := w.until("/", `<b>2 of 3</b> nodes in service`)
	if !strings.Contains(body, "no answer") || !strings.Contains(body, "unplugged") ||
		!strings.Contains(body, "2 of 3 nodes in service. Locks work; no further failure tolerated.") {
		t.Errorf("with one node down the page is %s", body)
	}
	w.down(1)
	body = w.until("/", "1 of 3 nodes reachable; quorum is 2")
	if !strings.Contains(body, `<span class="badge unknown">unknown</span>`) {
		t.Errorf("with two nodes down the page is %s", body)
	}
	w.until("/lock?name=job", "only 1 of 3 nodes answer")
	w.up(0)
	w.up(1)
	w.until("/", "is back in service")
}

// TestBeforeTheFirstAnswerThereIsAPage: nothing is known, and it says so.
func TestBeforeTheFirstAnswerThereIsAPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	w.page.Close() // no survey is made any more
	status, body, _ := w.get("/")
	if status != 200 || !strings.Contains(body, "The nodes have not answered yet") || !strings.Contains(body, "No node has answered yet") {
		t.Errorf("%d: %s", status, body)
	}
}
