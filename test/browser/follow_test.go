package browser

import (
	"context"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/ui"
)

// TestThePageFollowsWithoutAReload: a lock appears, a waiter queues, the holder
// releases, the waiter has it, and all the time it is the same page.
func TestThePageFollowsWithoutAReload(t *testing.T) {
	t.Parallel()
	page, clients, _ := quorum(t, 3, "first", "second")
	url := serve(t, page, ui.Options{})
	ctx := tab(t)
	do(t, ctx, chromedp.Navigate(url+"/"), chromedp.Evaluate[chromedp.Void](`window.marker = "the same page"`))
	until(t, ctx, "no lock, live", `document.querySelector("#live").textContent === "live" && document.querySelector("#locks").innerText.includes("No locks")`)

	lease := lock(t, clients[0], "backup", redlatch.LockOptions{TTL: 20 * time.Second})
	until(t, ctx, "the lock with its holder", row("backup")+`.includes("/first")`)
	until(t, ctx, "the event", `document.querySelector("#lately").innerText.includes("acquired by")`)

	got := make(chan *redlatch.Lease, 1)
	wait, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	go func() {
		second, err := clients[1].Lock(wait, "backup", &redlatch.LockOptions{TTL: 20 * time.Second})
		if err != nil {
			t.Error(err)
		}
		got <- second
	}()
	until(t, ctx, "the waiter", row("backup")+`.split("\t")[4].trim() === "1"`)
	until(t, ctx, "the waiter in the summary", `/\b1 waiter/.test(document.querySelector("#summary").innerText)`)

	lease.Release(t.Context())
	if second := <-got; second != nil {
		defer second.Release(context.Background())
	}
	until(t, ctx, "the second holder", row("backup")+`.includes("/second")`)
	until(t, ctx, "nobody who waits", row("backup")+`.split("\t")[4].trim() === "0"`)
	if m := eval[string](t, ctx, `String(window.marker)`); m != "the same page" {
		t.Errorf("the marker is %q: the page was loaded again", m)
	}
}

// TestThePageOfALockFollows: holders, queue, what each node says, and the
// command that breaks it.
func TestThePageOfALockFollows(t *testing.T) {
	t.Parallel()
	page, clients, servers := quorumWithin(t, 2*time.Second, 3, "reader-a", "reader-b", "writer")
	url := serve(t, page, ui.Options{})
	ctx := tab(t)
	do(t, ctx, chromedp.Navigate(url+"/lock?name=files"), chromedp.Evaluate[chromedp.Void](`window.marker = 1`))
	until(t, ctx, "that it is free", `document.querySelector("#state").innerText.includes("free") && document.querySelector("#live").textContent === "live"`)
	for _, c := range clients[:2] {
		defer lock(t, c, "files", redlatch.LockOptions{Shared: true, TTL: 20 * time.Second}).Release(context.Background())
	}
	until(t, ctx, "two readers", `document.querySelectorAll("#holders tr[id^=h]").length === 2 && document.querySelector("#holders").innerText.includes("/reader-a")`)
	wait, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		clients[2].Lock(wait, "files", nil)
	}()
	until(t, ctx, "the writer in the queue", `document.querySelector("#waiters").innerText.includes("/writer") && document.querySelector("#waiters").innerText.includes("the whole lock")`)
	until(t, ctx, "the command", `document.querySelector("#break-command").textContent === "redlatch break files" && !document.querySelector("[data-copy]").hidden`)

	servers[2].Freeze()
	until(t, ctx, "that a node does not answer", `[...document.querySelectorAll("#answers tr")].some(r => r.querySelector(".danger"))`)
	servers[2].Thaw()
	until(t, ctx, "that it answers again", `![...document.querySelectorAll("#answers tr")].some(r => r.querySelector(".danger"))`)
	cancel()
	<-done
	until(t, ctx, "that nobody waits", `document.querySelector("#waiters").innerText.includes("No waiters")`)
	if !eval[bool](t, ctx, `window.marker === 1`) {
		t.Error("the page was loaded again")
	}
}

// TestTheFocusStaysWhereItIs: a row that changes does not lose the focus.
func TestTheFocusStaysWhereItIs(t *testing.T) {
	t.Parallel()
	page, clients, _ := quorum(t, 1, "holder", "waiter")
	url := serve(t, page, ui.Options{})
	ctx := tab(t)
	defer lock(t, clients[0], "a", redlatch.LockOptions{}).Release(context.Background())
	do(t, ctx, chromedp.Navigate(url+"/"))
	until(t, ctx, "live", `document.querySelector("#live").textContent === "live"`)
	do(t, ctx, chromedp.Evaluate[chromedp.Void](`document.querySelector("#locks a").focus()`))
	wait, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		clients[1].Lock(wait, "a", nil)
	}()
	defer func() {
		cancel()
		<-done
	}()
	until(t, ctx, "one who waits", row("a")+`.split("\t")[4].trim() === "1"`)
	if at := eval[string](t, ctx, `document.activeElement.textContent`); at != "a" {
		t.Errorf("the focus is on %q", at)
	}
}
