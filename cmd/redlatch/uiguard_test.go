package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestGuessesAreSlowedDownByTheirAddress(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	g := newGate("correct horse battery")
	g.now = func() time.Time { return now }
	page := g.protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "the page") }))
	ask := func(from, password string) int {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = from
		if password != "" {
			r.SetBasicAuth("", password)
		}
		rec := httptest.NewRecorder()
		page.ServeHTTP(rec, r)
		if rec.Code != 200 && (rec.Header().Get("X-Frame-Options") != "DENY" || rec.Header().Get("Cache-Control") != "no-store") {
			t.Errorf("the refusal has the headers %v", rec.Header())
		}
		return rec.Code
	}
	expect := func(what string, got, want int) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	const evil, friend = "192.0.2.1:1000", "192.0.2.2:1000"
	for range 50 {
		expect("no password", ask(evil, ""), 401) // is no guess
	}
	for i := range freeGuesses {
		expect(fmt.Sprintf("guess %d", i), ask(evil, "x"), 401)
	}
	expect("one more", ask(evil, "x"), 429)
	expect("the right one, too late", ask("192.0.2.1:2000", "correct horse battery"), 429)
	expect("from elsewhere", ask(friend, "correct horse battery"), 200)
	expect("a longer one", ask(friend, "correct horse battery staple"), 401)
	now = now.Add(guessEvery)
	expect("after a while", ask(evil, "x"), 401)
	expect("and once more", ask(evil, "x"), 429)
	now = now.Add(time.Hour)
	expect("after an hour", ask(evil, "correct horse battery"), 200)

	for i := range freeGuesses { // the second half of an address is free to choose
		expect("of a network", ask(fmt.Sprintf("[2001:db8::%d]:1", i+1), "x"), 401)
	}
	expect("one more of it", ask("[2001:db8::ffff]:1", "x"), 429)
	expect("of another", ask("[2001:db8:0:1::1]:1", "x"), 401)
	expect("mapped", ask("[::ffff:192.0.2.2]:1", "x"), 401)
	for i := range maxGuessers + 1000 {
		ask(fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255), "x")
	}
	if n := len(g.guesses); n > maxGuessers {
		t.Errorf("%d addresses are remembered", n)
	}
}
