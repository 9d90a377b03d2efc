package ui

import (
	"html"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/node"
)

func TestFillEscapesTexts(t *testing.T) {
	got := fill(`<a href="%">%</a>%`, `"><x>`, "<b>&'", fill("<i>%</i>", 7))
	if want := markup(`<a href="&#34;&gt;&lt;x&gt;">&lt;b&gt;&amp;&#39;</a><i>7</i>`); got != want {
		t.Errorf("it is %s", got)
	}
	for _, wrong := range []func(){
		func() { fill("%") }, func() { fill("", "x") }, func() { fill("%", 1.5) }, func() { fill("%", kindHeld) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("a wrong argument is not noticed")
				}
			}()
			wrong()
		}()
	}
}

// TestNothingBecomesMarkupUnescaped looks for conversions: in html.go alone a
// text becomes markup, after it is escaped.
func TestNothingBecomesMarkupUnescaped(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	convert := regexp.MustCompile(`\bmarkup\(|template\.HTML|text/template`)
	for _, f := range files {
		text, err := os.ReadFile(f)
		must(t, err)
		if m := convert.FindString(string(text)); m != "" && f != "html.go" && !strings.HasSuffix(f, "_test.go") {
			t.Errorf("%s has %s", f, m)
		}
	}
	pages, _ := filepath.Glob("assets/*.html")
	inline := regexp.MustCompile(`(?i)<script>|<style|\son\w+=|\sstyle=|javascript:|https?://`)
	for _, f := range pages {
		text, err := os.ReadFile(f)
		must(t, err)
		if m := inline.FindString(string(text)); m != "" {
			t.Errorf("%s has %q, which the policy forbids", f, m)
		}
	}
}

var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, `</title></td></table><script>`,
	`{{locks}}`, `javascript:alert(1)`, `%s%`, "a\u202eb", strings.Repeat("<u>x</u>", 64), " lead", "&amp;", `\`, "?name=x&q=y#z",
}

// tags are the beginnings of elements that names must not become.
var tags = regexp.MustCompile(`<(script|img|u)>|<img src=x|\sonmouseover='`)

func TestHostileNamesAreEscaped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	for _, name := range hostile {
		w.lock(name, redlatch.LockOptions{})
	}
	base := w.serve()
	body := w.until("/", `<tr id="l`)
	f := follow(t, base+"/events")
	f.until("all of them", func() bool { return len(f.orders["locks"]) == len(hostile) })
	for what, page := range map[string]string{"the page": body, "the events": f.list("locks")} {
		if m := tags.FindString(page); m != "" {
			t.Errorf("%s contains %s", what, m)
		}
		for _, name := range hostile {
			link := `href="` + html.EscapeString("lock?name="+url.QueryEscape(name)) + `"`
			if !strings.Contains(page, link) {
				t.Errorf("%s has no %s", what, link)
			}
		}
	}
	for _, name := range hostile {
		status, page, _ := w.get("/lock?name=" + url.QueryEscape(name))
		if m := tags.FindString(page); status != 200 || m != "" {
			t.Errorf("the page of %q: %d, contains %s", name, status, m)
		}
		if !strings.Contains(page, `tabindex="-1">`+string(shown(name))+`</h1>`) {
			t.Errorf("the page of %q does not name it", name)
		}
		if command := html.EscapeString("redlatch break " + shellWord(name)); !strings.Contains(page, ">"+command+"<") {
			t.Errorf("the page of %q has no command %s", name, command)
		}
	}
	for _, q := range hostile {
		_, page, _ := w.get("/?sort=%22%3E%3Cb%3E&q=" + url.QueryEscape(q+"no such"))
		if m := tags.FindString(page); m != "" {
			t.Errorf("the search for %q contains %s", q, m)
		}
	}
}

// TestHostileOwnersAreEscaped: on a node, an owner may be anything.
func TestHostileOwnersAreEscaped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{BreakFlags: []string{"--nodes", "redis://a:1,redis://b:2"}})
	for _, n := range w.nodes {
		for name, value := range map[string]string{
			"lease": strings.Repeat("0", 32) + ":<script>alert(1)</script>",
			"other": "\x1b[31m<script>alert(1)</script>\n\u202e\xff",
			"-x":    strings.Repeat("1", 32) + `:h/1/"><img src=x onerror=alert(1)>`,
		} {
			req := node.Request{Op: node.OpAcquire, Name: name, Value: value, TTL: testPatience}
			if r, err := n.Node.Do(t.Context(), req); err != nil || r.Status != node.Granted {
				t.Fatal(r, err)
			}
		}
	}
	for path, want := range map[string]string{
		"/":                "&lt;script&gt;alert(1)&lt;/script&gt;",
		"/lock?name=other": `another client</span> <bdi>&#34;\x1b[31m&lt;script&gt;`,
		"/lock?name=-x":    ">redlatch break --nodes redis://a:1,redis://b:2 -- -x<",
	} {
		page := w.until(path, want)
		if m := tags.FindString(page); m != "" {
			t.Errorf("%s contains %s", path, m)
		}
	}
}

// TestTheCommandNamesTheKey: the command has no prefix, so the client's is part
// of the name.
func TestTheCommandNamesTheKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	prefixed := w.client("prefixed", "app:")
	if _, err := prefixed.Lock(t.Context(), "job 1", nil); err != nil {
		t.Fatal(err)
	}
	page, err := New(prefixed, nil)
	must(t, err)
	t.Cleanup(func() { page.Close() })
	w.page = page
	if body := w.until("/lock?name=job+1", "redlatch break"); !strings.Contains(body, ">redlatch break &#39;app:job 1&#39;<") {
		t.Errorf("the page is %s", body)
	}
}
