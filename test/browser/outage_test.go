package browser

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/ui"
)

// TestOutagesAreShownAsLongAsTheyLast has one server that restarts without its
// data, and is quarantined, and then none at all. With one server away the page is
// live, and says that no other may fail. Without servers it is not: it says since
// when, from when what it shows is, and what that means; and it follows again
// afterwards.
func TestOutagesAreShownAsLongAsTheyLast(t *testing.T) {
	t.Parallel()
	page, clients, servers := quorumWithin(t, 2*time.Second, 3, "deploy.sh", "report.py", "rollback.sh")
	lease := lock(t, clients[0], "deploy/frontend", redlatch.LockOptions{TTL: 20 * time.Second})
	lock(t, clients[1], "nightly-report", redlatch.LockOptions{TTL: 20 * time.Second}) // until the client is closed
	wait(t, clients[2], "deploy/frontend")
	ctx := watch(t, serve(t, page, ui.Options{})+"/")
	until(t, ctx, "both locks", `document.querySelectorAll("#locks tr[id^=l]").length === 2 && `+waiters("deploy/frontend", 1))
	if notice := eval[string](t, ctx, `document.querySelector("#notice").innerText`); notice != "" {
		t.Errorf("while all is well there is a notice: %s", notice)
	}
	short := func(i int) string { return strings.TrimPrefix(servers[i].URL(), "redis://127.0.0.1") }
	const follows = isLive + ` && !document.querySelector("tr.stale")`
	const oneAway = "2 of 3 nodes in service. Locks work; no further failure tolerated."

	servers[2].Kill()
	until(t, ctx, "the server that is away", says("#notice", oneAway, short(2)+" unreachable since "))
	until(t, ctx, "that the page is live", follows)
	until(t, ctx, "the server in the list", says("#nodes", "no answer", "since "))
	canBeRead(t, ctx, "one stopped")
	servers[2].Restart()
	until(t, ctx, "what it has forgotten", says("#lately", short(2)+": forgot 2 locks"))
	lease.Extend(context.Background()) // finds it, and marks it
	until(t, ctx, "the quarantine", says("#notice", oneAway, short(2)+" quarantined since ", ", until ", "new, or lost its data", "It grants no lock before", "redlatch doctor --ready -w 2m"))
	until(t, ctx, "that the page is live", follows)
	canBeRead(t, ctx, "quarantined")
	lease.Release(context.Background())
	until(t, ctx, "that the next one has the lock", row("deploy/frontend")+`.includes("/rollback.sh")`)
	until(t, ctx, "the release", says("#lately", "released by"))

	for _, s := range slices.Backward(servers) { // the others have both locks, if a survey comes in between
		s.Kill()
	}
	until(t, ctx, "the outage", says("#notice", "0 of 3 nodes reachable; quorum is 2", "Locks are unavailable",
		short(0)+" unreachable since ", short(1)+" unreachable since ", short(2)+" unreachable since ",
		"as the nodes reported them at ", "No lock can be acquired or extended until 2 nodes answer: redlatch doctor", "the last expires at ", "without its data is quarantined first"))
	if live := eval[string](t, ctx, `document.querySelector("#live").innerText`); !strings.HasPrefix(live, "not live: as of ") {
		t.Errorf("without a server the page is %q", live)
	}
	until(t, ctx, "the locks of then", row("deploy/frontend")+`.includes("/rollback.sh") && `+row("deploy/frontend")+`.includes("unknown") && document.querySelectorAll("#locks tr.stale").length === 2`)
	until(t, ctx, "the summary of then", says("#summary", "as of ", "2 held", "0 of 3 nodes in service"))
	canBeRead(t, ctx, "all stopped")
	for _, s := range servers {
		s.Restart()
	}
	until(t, ctx, "that it follows again", follows)
}

// TestPageThatHearsNothingIsNotLive has a connection that is silent for good, as
// through a tunnel that died: neither end is notified.
func TestPageThatHearsNothingIsNotLive(t *testing.T) {
	t.Parallel()
	page, _, _ := quorum(t, 1, "one")
	tunnel, err := servertest.OpenProxy(strings.TrimPrefix(serve(t, page, ui.Options{}), "http://"))
	must(t, err)
	t.Cleanup(tunnel.Close)
	ctx := watch(t, "http://"+tunnel.Addr()+"/")
	do(t, ctx, chromedp.Evaluate[chromedp.Void](`window.changes = 0; new MutationObserver(() => window.changes++).observe(document.querySelector("#live"), {childList: true})`))
	time.Sleep(17 * time.Second)
	if n := eval[int](t, ctx, `window.changes`); n != 0 {
		t.Errorf("while nothing happened, the page has changed its mind %d times", n)
	}
	tunnel.Partition(true)
	until(t, ctx, "that it is not live", `document.querySelector("#live").textContent === "not connected, trying again"`)
	tunnel.Partition(false)
	until(t, ctx, "that it follows again", isLive)
}
