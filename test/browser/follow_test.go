package browser

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/ui"
)

// TestThePageFollowsWithoutAReload: a lock appears, a waiter queues, the holder
// releases, the waiter has it, and all the time it is the same page. A row that
// changes does not lose the focus.
func TestThePageFollowsWithoutAReload(t *testing.T) {
	t.Parallel()
	page, clients, _ := quorum(t, 3, "first", "second")
	ctx := watch(t, serve(t, page, ui.Options{})+"/")
	do(t, ctx, mark)
	until(t, ctx, "no lock", says("#locks", "No locks"))
	lease := lock(t, clients[0], "backup", redlatch.LockOptions{TTL: 20 * time.Second})
	until(t, ctx, "the lock with its holder", row("backup")+`.includes("/first")`)
	until(t, ctx, "the event", says("#lately", "acquired by"))
	do(t, ctx, chromedp.Evaluate[chromedp.Void](`document.querySelector("#locks a").focus()`))
	wait(t, clients[1], "backup")
	until(t, ctx, "the waiter", waiters("backup", 1))
	if at := eval[string](t, ctx, `document.activeElement.textContent`); at != "backup" {
		t.Errorf("the focus is on %q", at)
	}
	until(t, ctx, "the waiter in the summary", `/\b1 waiter/.test(document.querySelector("#summary").innerText)`)
	lease.Release(t.Context())
	until(t, ctx, "the second holder", row("backup")+`.includes("/second")`)
	until(t, ctx, "nobody who waits", waiters("backup", 0))
	until(t, ctx, "that it was not loaded again", hasMark)
}

// TestThePageOfALockFollows: holders, what each node says, and the command that breaks
// it. Package ui tests the rest.
func TestThePageOfALockFollows(t *testing.T) {
	t.Parallel()
	page, clients, servers := quorumWithin(t, 2*time.Second, 3, "writer")
	ctx := watch(t, serve(t, page, ui.Options{})+"/lock?name=files")
	do(t, ctx, mark)
	until(t, ctx, "that it is free", says("#state", "free"))
	lock(t, clients[0], "files", redlatch.LockOptions{TTL: 20 * time.Second})
	until(t, ctx, "the command", `document.querySelector("#break-command").textContent === "redlatch break files" && !document.querySelector("[data-copy]").hidden`)
	servers[2].Freeze()
	until(t, ctx, "that a node does not answer", `document.querySelector("#answers .danger") !== null`)
	servers[2].Thaw()
	until(t, ctx, "that it answers again", `document.querySelector("#answers .danger") === null && `+says("#holders", "/writer"))
	until(t, ctx, "that it was not loaded again", hasMark)
}
