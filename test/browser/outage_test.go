package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/ui"
)

// troubled is a page of three servers with two locks, one of them contended.
func troubled(t *testing.T) (context.Context, []*servertest.Server, *redlatch.Lease) {
	t.Helper()
	page, clients, servers := quorumWithin(t, 2*time.Second, 3, "deploy.sh", "report.py", "rollback.sh")
	lease := lock(t, clients[0], "deploy/frontend", redlatch.LockOptions{TTL: 20 * time.Second})
	lock(t, clients[1], "nightly-report", redlatch.LockOptions{TTL: 20 * time.Second}) // until the client is closed
	wait, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		clients[2].Lock(wait, "deploy/frontend", nil)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	ctx := tab(t)
	do(t, ctx, chromedp.EmulateViewport(1280, 720), chromedp.Navigate(serve(t, page, ui.Options{})+"/"))
	until(t, ctx, "both locks, live", `document.querySelector("#live").textContent === "live" && document.querySelectorAll("#locks tr[id^=l]").length === 2 && `+
		row("deploy/frontend")+`.split("\t")[4].trim() === "1"`)
	if notice := eval[string](t, ctx, `document.querySelector("#notice").innerText`); notice != "" {
		t.Errorf("while all is well there is a notice: %s", notice)
	}
	return ctx, servers, lease
}

// says is an expression that is true if an element shows all of the texts.
func says(element string, texts ...string) string {
	return fmt.Sprintf(`%q.split("|").every(t => document.querySelector(%q).innerText.includes(t))`, strings.Join(texts, "|"), element)
}

// photograph writes what the window shows into the folder that REDLATCH_PICTURES
// names, and checks that all of it can be read.
func photograph(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	for _, low := range eval[[]string](t, ctx, lowContrast) {
		t.Errorf("%s: %s", name, low)
	}
	if dir := os.Getenv("REDLATCH_PICTURES"); dir != "" {
		png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, "ui-"+name+".png"), png, 0o644))
	}
	narrow(t, ctx, name)
}

// TestWithAllServersStoppedThePageIsNotLive: it says since when, from when what it
// shows is, and what that means; and it follows again afterwards.
func TestWithAllServersStoppedThePageIsNotLive(t *testing.T) {
	t.Parallel()
	ctx, servers, _ := troubled(t)
	for _, s := range servers {
		s.Kill()
	}
	until(t, ctx, "the outage", says("#notice", "0 of 3 nodes reachable; quorum is 2", "Locks are unavailable",
		servers[0].URL()+" unreachable since ", servers[1].URL()+" unreachable since ", servers[2].URL()+" unreachable since ",
		"as the nodes reported them at ", "No lock can be acquired or extended", "the last expires at ", "without its data is quarantined first"))
	if live := eval[string](t, ctx, `document.querySelector("#live").innerText`); !strings.HasPrefix(live, "not live: as of ") {
		t.Errorf("without a server the page is %q", live)
	}
	until(t, ctx, "the locks of then", row("deploy/frontend")+`.includes("/deploy.sh") && `+row("deploy/frontend")+`.includes("unknown") && document.querySelectorAll("#locks tr.stale").length === 2`)
	until(t, ctx, "the summary of then", says("#summary", "as of ", "2 held", "0 of 3 nodes in service"))
	photograph(t, ctx, "all-stopped")
	for _, s := range servers {
		s.Restart()
	}
	until(t, ctx, "that it follows again", `document.querySelector("#live").textContent === "live" && !document.querySelector("tr.stale")`)
}

// TestWithOneServerStoppedLocksWork: the page is live, and says which server is
// away since when, and that no other may fail.
func TestWithOneServerStoppedLocksWork(t *testing.T) {
	t.Parallel()
	ctx, servers, lease := troubled(t)
	servers[1].Kill()
	until(t, ctx, "the server that is away", says("#notice", "2 of 3 nodes in service. Locks work; no further failure tolerated.", servers[1].URL()+" unreachable since "))
	until(t, ctx, "that the page is live", `document.querySelector("#live").textContent === "live" && !document.querySelector("tr.stale")`)
	until(t, ctx, "the server in the list", says("#nodes", "no answer", "since "))
	photograph(t, ctx, "one-stopped")
	lease.Release(context.Background())
	until(t, ctx, "that the next one has the lock", row("deploy/frontend")+`.includes("/rollback.sh")`)
	until(t, ctx, "the release", says("#lately", "released by"))
}

// TestAServerInQuarantineIsNamed: it came back without its data. The page says until
// when it grants nothing, and what it has forgotten.
func TestAServerInQuarantineIsNamed(t *testing.T) {
	t.Parallel()
	ctx, servers, lease := troubled(t)
	servers[2].Kill()
	servers[2].Restart()
	until(t, ctx, "what it has forgotten", says("#lately", servers[2].URL()+" has forgotten 2 locks"))
	lease.Extend(context.Background()) // finds it, and marks it
	until(t, ctx, "the quarantine", says("#notice", "2 of 3 nodes in service. Locks work; no further failure tolerated.",
		servers[2].URL()+" quarantined since ", ", until ", "new, or lost its data", "it grants no lock before"))
	until(t, ctx, "that the page is live", `document.querySelector("#live").textContent === "live" && !document.querySelector("tr.stale")`)
	photograph(t, ctx, "quarantined")
}

// TestPageThatHearsNothingIsNotLive has a connection that is silent for good, as
// through a tunnel that died: neither end is notified.
func TestPageThatHearsNothingIsNotLive(t *testing.T) {
	t.Parallel()
	page, _, _ := quorum(t, 1, "one")
	tunnel, err := servertest.OpenProxy(strings.TrimPrefix(serve(t, page, ui.Options{}), "http://"))
	must(t, err)
	t.Cleanup(tunnel.Close)
	ctx := tab(t)
	do(t, ctx, chromedp.Navigate("http://"+tunnel.Addr()+"/"))
	const live = `document.querySelector("#live").textContent`
	until(t, ctx, "live", live+` === "live"`)
	eval[bool](t, ctx, `window.changes = 0, new MutationObserver(() => window.changes++).observe(document.querySelector("#live"), {childList: true}), true`)
	time.Sleep(17 * time.Second)
	if n := eval[int](t, ctx, `window.changes`); n != 0 {
		t.Errorf("while nothing happened, the page has changed its mind %d times", n)
	}
	tunnel.Partition(true)
	until(t, ctx, "that it is not live", live+` === "not connected, trying again"`)
	tunnel.Partition(false)
	until(t, ctx, "that it follows again", live+` === "live"`)
}
