package ui

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
)

func TestEveryAnswerHasTheHeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	w.lock("job", redlatch.LockOptions{})
	const html, plain = "text/html; charset=utf-8", "text/plain; charset=utf-8"
	for _, c := range []struct {
		path   string
		status int
		kind   string
	}{
		{"/", 200, html}, {"/?q=x&page=7&sort=waiting", 200, html}, {"/lock?name=job", 200, html}, {"/lock?name=other", 200, html},
		{"/lock?name=%00", 400, html}, {"/lock", 400, plain}, {"/assets/page.js", 404, plain}, {"/../go.mod", 404, plain},
		{"/style.css", 200, "text/css; charset=utf-8"}, {"/page.js", 200, "text/javascript; charset=utf-8"}, {"/icon.svg", 200, "image/svg+xml"},
	} {
		status, body, h := w.get(c.path)
		if status != c.status || h.Get("Content-Type") != c.kind || body == "" {
			t.Errorf("%s: %d, %s, %d bytes", c.path, status, h.Get("Content-Type"), len(body))
		}
		checkHeaders(t, c.path, h)
	}
	_, _, h := w.get("/", func(r *http.Request) { r.Method = http.MethodPost })
	checkHeaders(t, "POST", h)
}

func checkHeaders(t *testing.T, what string, h http.Header) {
	t.Helper()
	for name, want := range map[string]string{
		"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
		"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s: %s is %q", what, name, got)
		}
	}
	csp := "; " + h.Get("Content-Security-Policy") + ";"
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
		if !strings.Contains(csp, "; "+want+";") {
			t.Errorf("%s: the policy %q has no %s", what, csp, want)
		}
	}
	if strings.Contains(csp, "unsafe") || strings.Contains(csp, "http") || strings.Contains(csp, "*") {
		t.Errorf("%s: the policy allows too much: %s", what, csp)
	}
}

func TestThePageIsForReading(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREAK"} {
		for _, path := range []string{"/", "/lock?name=job", "/events", "/page.js"} {
			brief, cancel := context.WithTimeout(t.Context(), time.Second)
			status, _, h := w.get(path, func(r *http.Request) {
				*r = *r.WithContext(brief) // should it be answered with a stream
				r.Method = method
			})
			cancel()
			if status != http.StatusMethodNotAllowed || h.Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: %d, Allow: %q", method, path, status, h.Get("Allow"))
			}
		}
	}
	for _, path := range []string{"/", "/events"} {
		if status, _, _ := w.get(path, func(r *http.Request) { r.Method = http.MethodHead }); status != http.StatusOK {
			t.Errorf("HEAD %s: %d", path, status)
		}
	}
}

func TestOtherHostNamesAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{Hosts: []string{"localhost", "127.0.0.1", "::1", "locks.example.org"}})
	for host, want := range map[string]int{
		"localhost": 200, "localhost:8089": 200, "LOCALHOST:1": 200, "127.0.0.1:8089": 200, "[::1]:8089": 200, "[::1]": 200, "locks.example.org.": 200,
		"evil.example": 421, "evil.example:8089": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example:8089": 421, "": 421, "127.0.0.2": 421, "[::2]": 421,
	} {
		for _, path := range []string{"/", "/page.js", "/lock?name=job"} {
			status, body, _ := w.get(path, func(r *http.Request) { r.Host = host })
			if status != want {
				t.Errorf("%s under %q: %d, want %d", path, host, status, want)
			}
			if status == 421 && strings.Contains(body, "<") {
				t.Errorf("the refusal is %q", body)
			}
		}
	}
	open := newWorld(t, Options{})
	if status, _, _ := open.get("/", func(r *http.Request) { r.Host = "any.example" }); status != 200 {
		t.Errorf("without Hosts another name gets %d", status)
	}
}

func TestPagesOfOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	for _, c := range []struct {
		site, mode, dest, origin string
		page, events             bool
	}{
		{"", "", "", "", true, true}, // no browser
		{"none", "navigate", "document", "", true, true},
		{"same-origin", "cors", "empty", "", true, true}, {"same-origin", "cors", "empty", "http://example.com", true, true},
		{"cross-site", "navigate", "document", "", true, false}, // a link
		{"cross-site", "navigate", "iframe", "", false, false}, {"cross-site", "cors", "empty", "http://evil.example", false, false},
		{"cross-site", "no-cors", "empty", "", false, false}, {"cross-site", "no-cors", "script", "", false, false},
		{"same-site", "cors", "empty", "", false, false}, {"surprise", "", "", "", false, false},
		{"", "", "", "http://evil.example", false, false}, {"", "", "", "http://example.com", true, true},
		{"", "", "", "http://example.com:81", false, false}, {"", "", "", "null", false, false},
	} {
		set := func(r *http.Request) {
			r.Host = "example.com"
			for name, value := range map[string]string{"Sec-Fetch-Site": c.site, "Sec-Fetch-Mode": c.mode, "Sec-Fetch-Dest": c.dest, "Origin": c.origin} {
				if value != "" {
					r.Header.Set(name, value)
				}
			}
		}
		for path, may := range map[string]bool{"/": c.page, "/lock?name=a": c.page, "/events": c.events} {
			status, body, _ := w.get(path, set, func(r *http.Request) { r.Method = http.MethodHead })
			if want := map[bool]int{true: 200, false: 403}[may]; status != want {
				t.Errorf("%s with %+v: %d, %s", path, c, status, body)
			}
		}
	}
}

// TestTheStreamOutlivesTheLimitsOfItsServer: a server that limits how long a
// request and an answer may take does not end it.
func TestTheStreamOutlivesTheLimitsOfItsServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	f := follow(t, w.serve(func(s *http.Server) {
		s.ReadTimeout, s.WriteTimeout = 500*time.Millisecond, 500*time.Millisecond
	})+"/events")
	f.next()
	time.Sleep(1500 * time.Millisecond)
	w.lock("late", redlatch.LockOptions{})
	f.shows("locks", "late")
}

func TestItCanBeMountedUnderAPath(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{Title: "Locks <of> us"})
	w.lock("a/b", redlatch.LockOptions{})
	mux := http.NewServeMux()
	mux.Handle("/internal/locks/", http.StripPrefix("/internal/locks", w.page))
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	for path, want := range map[string]string{
		"/internal/locks/": `href="lock?name=a%2Fb"`, "/internal/locks": "Locks &lt;of&gt; us",
		"/internal/locks/lock?name=a%2Fb": `href="./"`, "/internal/locks/style.css": "color-scheme",
	} {
		resp, body := fetch(t, s.URL+path)
		if resp.StatusCode != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %s, without %s", path, resp.Status, want)
		}
		for _, absolute := range []string{`href="/`, `src="/`, `href="http`, `src="http`, `action="/`} {
			if strings.Contains(body, absolute) {
				t.Errorf("%s has an address %s…: it must work under any path", path, absolute)
			}
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	w := newWorld(t, Options{})
	client := w.holder
	for field, opts := range map[string]Options{
		"Interval": {Interval: time.Millisecond}, "MaxViewers": {MaxViewers: -1}, "Hosts": {Hosts: []string{"Example.org:80"}},
	} {
		if _, err := New(client, &opts); err == nil || !strings.Contains(err.Error(), field+" is ") {
			t.Errorf("%+v: %v", opts, err)
		}
	}
	if _, err := New(nil, nil); err == nil {
		t.Error("a page without a client")
	}
}
