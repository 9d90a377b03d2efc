package browser

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/redis/direct"
	"github.com/redlatch/redlatch/ui"
)

// TestTenThousandLocksStayUsable: the page shows one page of them, the search
// finds one, and paging works.
func TestTenThousandLocksStayUsable(t *testing.T) {
	t.Parallel()
	const many = 10_000
	nodes, err := direct.Nodes(servertest.Redis(t, 1)[0].URL())
	must(t, err)
	for i := range many {
		_, err := nodes[0].Do(t.Context(), node.Request{
			Op: node.OpAcquire, Name: fmt.Sprintf("job/%05d", i), Value: fmt.Sprintf("%032x:host/1/worker", i),
			TTL: time.Hour, Fencing: node.Fencing{Token: node.Token(time.Now().UnixMicro()), Window: time.Hour, Retention: 4 * time.Hour},
		})
		must(t, err)
	}
	client, err := redlatch.New(nodes, nil)
	must(t, err)
	t.Cleanup(func() { client.Close() })
	url := serve(t, client, ui.Options{Interval: time.Second})
	ctx := watch(t, url+"/")
	do(t, ctx, mark)
	const shown = `document.querySelectorAll("#locks tr").length`
	until(t, ctx, "a page of them, and how many there are", shown+` === 100 && document.querySelector("#found").innerText === "10000 locks, 1 to 100 shown"`)

	do(t, ctx, chromedp.SendKeys(chromedp.ID("q"), "07777"))
	until(t, ctx, "the one that is searched", shown+` === 1 && `+row("job/07777")+` !== ""`)
	if !eval[bool](t, ctx, hasMark+` && location.search === "?q=07777"`) {
		t.Error("the search has loaded the page again, or is not in its address")
	}
	do(t, ctx, chromedp.Reload())
	until(t, ctx, "the one that is searched, after a reload", shown+` === 1 && `+row("job/07777")+` !== ""`)

	do(t, ctx, chromedp.Navigate(url+"/?q=job"))
	until(t, ctx, "a next page", `document.querySelector("#pager a[rel=next]") !== null`)
	do(t, ctx, chromedp.Evaluate[chromedp.Void](`document.querySelector("#pager a[rel=next]").click()`))
	until(t, ctx, "the second page", row("job/00100")+` !== "" && `+row("job/00099")+` === ""`)
	do(t, ctx, chromedp.Navigate(url+"/?page=5000"))
	until(t, ctx, "the last page in place of one beyond it", shown+` === 100 && `+row("job/09999")+` !== ""`)
	if n := eval[int](t, ctx, `document.querySelectorAll("*").length`); n > 6000 {
		t.Errorf("the page has %d elements", n)
	}
}
