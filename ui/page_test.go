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
