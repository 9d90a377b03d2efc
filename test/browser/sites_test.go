package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/store/memory"
	"github.com/redlatch/redlatch/ui"
)

// quoted is a text as an expression.
func quoted(s string) string { return strconv.QuoteToASCII(s) }

// small returns the address of a page with one lock, and what was answered to
// which request.
func small(t *testing.T, opts ui.Options) (string, func(path string) []int) {
	t.Helper()
	c, err := redlatch.New(memory.Nodes(3), nil)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	lock(t, c, "secret-name", redlatch.LockOptions{}) // until the client is closed
	page, err := ui.New(c, &opts)
	must(t, err)
	var mu sync.Mutex
	answers := map[string][]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/open" { // not ours, and without our headers
			fmt.Fprint(w, `<script>parent.postMessage("shown", "*")</script>`)
			return
		}
		seen := &answer{ResponseWriter: w, note: func(status int) {
			mu.Lock()
			defer mu.Unlock()
			answers[r.URL.Path] = append(answers[r.URL.Path], status)
		}}
		page.ServeHTTP(seen, r)
	}))
	t.Cleanup(func() {
		page.Close()
		server.Close()
	})
	return server.URL, func(path string) []int {
		mu.Lock()
		defer mu.Unlock()
		return append([]int(nil), answers[path]...)
	}
}

// answer notes the status of an answer.
type answer struct {
	http.ResponseWriter
	note func(int)
}

func (a *answer) WriteHeader(status int) {
	a.note(status)
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// TestAPageThatFramesItGetsNothing: neither another site's nor its own.
func TestAPageThatFramesItGetsNothing(t *testing.T) {
	t.Parallel()
	url, answers := small(t, ui.Options{})
	ctx := tab(t, "frame", "403", "404")
	evil := other(t, fmt.Sprintf(`<body><script>
		window.shown = 0; window.loaded = 0;
		addEventListener("message", () => window.shown++);
		for (const src of [%q, %q]) {
			const f = document.createElement("iframe");
			f.onload = () => window.loaded++;
			f.src = src;
			document.body.append(f);
		}
	</script>`, url+"/", url+"/open"))
	do(t, ctx, chromedp.Navigate(evil))
	until(t, ctx, "both frames", `window.loaded === 2 && window.shown === 1`) // the second one may be framed
	if got := answers("/"); len(got) != 1 || got[0] != http.StatusForbidden {
		t.Errorf("the frame was answered with %v", got)
	}
	if answers("/style.css") != nil || answers("/page.js") != nil || answers("/events") != nil {
		t.Error("the frame has loaded what belongs to the page")
	}
	// On its own site the headers alone prevent it.
	do(t, ctx, chromedp.Navigate(url+"/open"), chromedp.Evaluate[chromedp.Void](`
		window.loaded = 0;
		const f = document.createElement("iframe");
		f.onload = () => window.loaded++;
		f.src = "/";
		document.body.append(f);`))
	until(t, ctx, "the frame", `window.loaded >= 1`)
	if eval[bool](t, ctx, `document.querySelector("iframe").contentDocument !== null`) {
		t.Error("its own site may frame it")
	}
}

// TestAnotherSiteReadsNothing: neither by fetch, nor by events, nor as a script
// or a style. A link to it works.
func TestAnotherSiteReadsNothing(t *testing.T) {
	t.Parallel()
	url, answers := small(t, ui.Options{})
	ctx := tab(t, "CORS", "Failed to load resource", "ERR_", "MIME")
	evil := other(t, fmt.Sprintf(`<body><a href=%q>locks</a>`, url+"/"))
	do(t, ctx, chromedp.Navigate(evil))
	for what, js := range map[string]string{
		"fetch":           `fetch(%q).then(() => "read", () => "refused")`,
		"fetch, no CORS":  `fetch(%q, {mode: "no-cors"}).then(() => "read", () => "refused")`,
		"with a password": `fetch(%q, {mode: "no-cors", credentials: "include"}).then(() => "read", () => "refused")`,
		"events":          `new Promise(done => { const e = new EventSource(%q); e.onmessage = e.onopen = () => done("read"); e.onerror = () => done("refused"); })`,
		"script":          `new Promise(done => { const s = document.createElement("script"); s.onload = () => done("read"); s.onerror = () => done("refused"); s.src = %q; document.body.append(s); })`,
	} {
		for _, path := range []string{"/", "/events", "/lock?name=secret-name", "/page.js"} {
			if got := eval[string](t, ctx, fmt.Sprintf(js, url+path)); got != "refused" {
				t.Errorf("%s of %s: %s", what, path, got)
			}
		}
	}
	for _, path := range []string{"/", "/events", "/lock", "/page.js"} {
		for _, status := range answers(path) {
			if status != http.StatusForbidden {
				t.Errorf("%s was answered with %v", path, answers(path))
				break
			}
		}
	}
	do(t, ctx, chromedp.Click(chromedp.CSS("a")))
	until(t, ctx, "the page behind the link", isLive+` && `+row("secret-name")+` !== ""`)
}

// TestTheFirstViewNeedsNoScript: the table, the queue and the nodes are there
// with scripts off, and forms and links work.
func TestTheFirstViewNeedsNoScript(t *testing.T) {
	t.Parallel()
	url, answers := small(t, ui.Options{})
	ctx := tab(t)
	call(t, ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	do(t, ctx, chromedp.Navigate(url+"/"))
	text := eval[string](t, ctx, row("secret-name"))
	if !strings.Contains(text, "3/3") || !strings.Contains(text, " s\t") {
		t.Errorf("the row is %q", text)
	}
	if n := eval[int](t, ctx, `document.querySelectorAll("#nodes .health.fine").length`); n != 3 {
		t.Errorf("%d nodes are in service", n)
	}
	if live := eval[string](t, ctx, `document.querySelector("#live").innerText`); !strings.Contains(live, "as of") {
		t.Errorf("the page says that it is %q", live)
	}
	do(t, ctx, chromedp.SetValue(chromedp.ID("q"), "nothing like it"), chromedp.Submit(chromedp.ID("q")))
	until(t, ctx, "nothing found", `document.querySelector("#found")?.innerText.startsWith("0 of 1 lock found") ?? false`)
	do(t, ctx, chromedp.Navigate(url+"/"), chromedp.Click(chromedp.CSS("#locks a")))
	until(t, ctx, "the page of the lock", `document.querySelector("h1")?.textContent === "secret-name"`)
	if answers("/events") != nil {
		t.Error("a script has run")
	}
}

// TestTheKeyboardReachesEverything: the first key leads past the head, and what
// has the focus can be seen.
func TestTheKeyboardReachesEverything(t *testing.T) {
	t.Parallel()
	url, _ := small(t, ui.Options{})
	ctx := watch(t, url+"/")
	do(t, ctx, chromedp.KeyEvent(kb.Tab))
	if !eval[bool](t, ctx, `document.activeElement.className === "skip" && document.activeElement.getBoundingClientRect().top >= 0`) {
		t.Error("the first key does not lead to a link that can be seen")
	}
	do(t, ctx, chromedp.KeyEvent(kb.Enter))
	until(t, ctx, "the heading with the focus", `document.activeElement.id === "locks-title"`)
	reached := map[string]bool{}
	for range 20 {
		do(t, ctx, chromedp.KeyEvent(kb.Tab))
		at := eval[[]string](t, ctx, `(e => [e.tagName + " " + (e.id || e.textContent.trim()), getComputedStyle(e).outlineStyle])(document.activeElement)`)
		reached[at[0]] = true
		if at[1] == "none" && !strings.HasPrefix(at[0], "BODY") {
			t.Errorf("that %s has the focus cannot be seen", at[0])
		}
	}
	for _, want := range []string{"INPUT q", "BUTTON Search", "A Waiting clients", "A secret-name"} {
		if !reached[want] {
			t.Errorf("%s is not reached; reached are %v", want, reached)
		}
	}
	do(t, ctx, chromedp.Navigate(url+"/lock?name=secret-name"))
	until(t, ctx, "the button", isLive+` && document.querySelector("[data-copy]")?.hidden === false`)
	do(t, ctx, chromedp.Evaluate[chromedp.Void](`document.querySelector("[data-copy]").focus()`), chromedp.KeyEvent(kb.Enter))
	until(t, ctx, "that it is copied, or selected", `document.querySelector("[data-copy]").textContent !== "Copy"`)
}
