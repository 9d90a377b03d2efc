package browser

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/ui"
)

var must = check.Must

// patience is how long the tests wait for what must happen.
const patience = 60 * time.Second

// chromium is the browser that all tests of a run share; each has a context of
// its own, with its own cookies and windows.
var chromium context.Context

// folder is removed after the tests.
var folder string

func TestMain(m *testing.M) {
	code := func() int {
		path := findBrowser()
		if path == "" {
			return m.Run() // each test says what is missing
		}
		dir, err := os.MkdirTemp("", "chromium")
		if err != nil {
			slog.Error("no folder for the browser", "err", err)
			return 1
		}
		defer os.RemoveAll(dir)
		folder = dir
		allocator, stop := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.UserDataDir(filepath.Join(dir, "profile")),
			chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("host-resolver-rules", "MAP rebound.example 127.0.0.1"), chromedp.WSURLReadTimeout(patience))...)
		defer stop()
		browser, end := chromedp.NewContext(allocator, chromedp.WithErrorf(func(string, ...any) {}))
		defer end()
		chromium = browser
		return m.Run()
	}()
	os.Exit(code)
}

// findBrowser returns the path of the browser; empty for none.
func findBrowser() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// starting starts the browser once.
var starting sync.Once

// tab returns a new window of the browser. Dialogs, exceptions and errors on
// the console fail the test, except for errors that contain one of the given
// texts.
func tab(t *testing.T, expected ...string) context.Context {
	t.Helper()
	if testing.Short() {
		t.Skip("it needs chromium, and -short starts no browser")
	}
	if chromium == nil {
		t.Fatal("this test needs chromium: install it with the system's package manager (apt-get install chromium)")
	}
	starting.Do(func() { must(t, chromedp.Do(chromium)) })
	ctx, cancel := chromedp.NewContext(chromium, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	must(t, chromedp.Do(ctx))
	watchConsole(t, ctx, expected)
	ctx, end := context.WithTimeout(ctx, 3*patience)
	t.Cleanup(end)
	return ctx
}

// quorum starts servers, and returns a client of them for each label, and one
// for the page. A busy machine needs time.
func quorum(t *testing.T, n int, labels ...string) (*redlatch.Client, []*redlatch.Client, []*servertest.Server) {
	t.Helper()
	return quorumWithin(t, 10*time.Second, n, labels...)
}

// quorumWithin is quorum with a node time limit for the page.
func quorumWithin(t *testing.T, limit time.Duration, n int, labels ...string) (*redlatch.Client, []*redlatch.Client, []*servertest.Server) {
	t.Helper()
	servers := servertest.Redis(t, n)
	open := func(label string, limit time.Duration) *redlatch.Client {
		c, err := redlatch.Open(strings.Join(servertest.Addresses(servers), ","), &redlatch.Options{Label: label, AssumeFresh: true, NodeTimeout: limit})
		must(t, err)
		t.Cleanup(func() { c.Close() })
		return c
	}
	page := open("page", limit)
	var clients []*redlatch.Client
	for _, l := range labels {
		clients = append(clients, open(l, 10*time.Second))
	}
	return page, clients, servers
}

// serve serves the page of a client, on loopback.
func serve(t *testing.T, client *redlatch.Client, opts ui.Options) string {
	t.Helper()
	opts.Interval = cmp.Or(opts.Interval, 200*time.Millisecond)
	page, err := ui.New(client, &opts)
	must(t, err)
	server := httptest.NewServer(page)
	t.Cleanup(func() {
		page.Close()
		server.Close()
	})
	return server.URL
}

// other serves another site: a page with the given HTML, on another host name.
func other(t *testing.T, html string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, html)
	}))
	t.Cleanup(server.Close)
	return strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
}

// do does something in the browser.
func do(t *testing.T, ctx context.Context, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	must(t, chromedp.Do(ctx, steps...))
}

// call sends a command of the protocol.
func call[P, R any](t *testing.T, ctx context.Context, cmd cdp.Command[P, R], params P) R {
	t.Helper()
	r, err := chromedp.Call(ctx, cmd, params)
	must(t, err)
	return r
}

// eval returns the value of an expression on the page.
func eval[T any](t *testing.T, ctx context.Context, js string) T {
	t.Helper()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](js, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%s: %v", js, err)
	}
	return v
}

// until waits until an expression on the page is true. While the browser goes to
// another page it cannot be asked.
func until(t *testing.T, ctx context.Context, what, js string) {
	t.Helper()
	end := time.Now().Add(patience)
	for {
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool](js))
		if err == nil && is {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not seen: %s (%v). The page shows:\n%s", what, err, eval[string](t, ctx, "document.body.innerText"))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// isLive is an expression that is true while the page follows.
const isLive = `document.querySelector("#live").textContent === "live"`

// watch opens an address in a new window, and returns when the page follows.
func watch(t *testing.T, url string) context.Context {
	t.Helper()
	ctx := tab(t)
	do(t, ctx, chromedp.EmulateViewport(1280, 720), chromedp.Navigate(url))
	until(t, ctx, "live", isLive)
	return ctx
}

// mark has the page remember that it was not loaded again; hasMark says so.
var mark = chromedp.Evaluate[chromedp.Void](`window.marker = "the same page"`)

const hasMark = `window.marker === "the same page"`

// says is an expression that is true if an element shows all of the texts.
func says(element string, texts ...string) string {
	return fmt.Sprintf(`%q.split("|").every(t => document.querySelector(%q).innerText.includes(t))`, strings.Join(texts, "|"), element)
}

// wait has a client wait for a lock, until the returned function is called. If it
// gets the lock, it keeps it until its client is closed.
func wait(t *testing.T, c *redlatch.Client, name string) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var waiting sync.WaitGroup
	waiting.Go(func() { c.Lock(ctx, name, nil) })
	stop = func() {
		cancel()
		waiting.Wait()
	}
	t.Cleanup(stop)
	return stop
}

// lock takes a lock.
func lock(t *testing.T, c *redlatch.Client, name string, opts redlatch.LockOptions) *redlatch.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	lease, err := c.Lock(ctx, name, &opts)
	must(t, err)
	return lease
}

// waiters is an expression that is true if a lock's row counts so many.
func waiters(name string, n int) string {
	return fmt.Sprintf(`%s.split("\t")[4]?.trim() === "%d"`, row(name), n)
}

// row is an expression for the text of a lock's row; empty if there is none.
func row(name string) string {
	return fmt.Sprintf(`([...document.querySelectorAll("#locks tr")].find(r => r.querySelector("th")?.textContent === %q)?.innerText ?? "")`, name)
}
