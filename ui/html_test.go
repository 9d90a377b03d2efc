package ui

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/node"
)

func TestFillEscapesTexts(t *testing.T) {
	got := fill(`<a href="%">%</a>%`, `"><x>`, "<b>&'", fill("<i>%</i>", 7))
	if want := markup(`<a href="&#34;&gt;&lt;x&gt;">&lt;b&gt;&amp;&#39;</a><i>7</i>`); got != want {
		t.Errorf("it is %s", got)
	}
	if got := address("etcd://<a>:2379+b:1"); got != `<bdi>etcd://&lt;a&gt;<span class="port">:2379</span>+<wbr>b<span class="port">:1</span></bdi>` {
		t.Errorf("an address is %s", got)
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

// tags are the beginnings of elements that names must not become.
var tags = regexp.MustCompile(`<(script|img|u)>|<img src=x|\sonmouseover='`)

// TestHostileOwnersAreEscaped: on a node, an owner may be anything. A search may, too.
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
		"/?sort=%22%3E%3Cb%3E&q=%22%3E%3Cimg+src=x%3E": "&lt;img src=x&gt;",
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
