package browser

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/redis/direct"
	"github.com/redlatch/redlatch/ui"
)

// fill takes locks on all servers, as one holder.
func fill(t *testing.T, servers []*servertest.Server, names []string) {
	t.Helper()
	nodes, err := direct.Nodes(servertest.Addresses(servers)...)
	must(t, err)
	base := time.Now().UnixMicro()
	var all sync.WaitGroup
	for _, n := range nodes {
		all.Go(func() {
			defer n.Close()
			for i, name := range names {
				_, err := n.Do(t.Context(), node.Request{
					Op: node.OpAcquire, Name: name, Value: fmt.Sprintf("%032x:host/1/worker", i), TTL: time.Hour,
					Token: node.Token(base + int64(i)), Window: time.Hour, Retention: 4 * time.Hour,
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// TestTenThousandLocksStayUsable: the page shows one page of them, the search
// finds one, and paging works.
func TestTenThousandLocksStayUsable(t *testing.T) {
	t.Parallel()
	page, _, servers := quorum(t, 3)
	names := make([]string, 10_000)
	for i := range names {
		names[i] = fmt.Sprintf("job/%05d", i)
	}
	fill(t, servers, names)
	url := serve(t, page, ui.Options{Interval: time.Second})
	ctx := tab(t)
	start := time.Now()
	do(t, ctx, chromedp.Navigate(url+"/"), chromedp.Evaluate[chromedp.Void](`window.marker = 1`))
	t.Logf("first view of %d locks on %d servers: %v", len(names), len(servers), time.Since(start).Round(time.Millisecond))
	const shown = `document.querySelectorAll("#locks tr").length`
	until(t, ctx, "a page of them", shown+` === 100`)
	until(t, ctx, "live", `document.querySelector("#live").textContent === "live"`)
	until(t, ctx, "how many there are", `document.querySelector("#found").innerText === "10000 locks, 1 to 100 shown"`)

	start = time.Now()
	do(t, ctx, chromedp.SendKeys(chromedp.ID("q"), "07777"))
	until(t, ctx, "the one that is searched", shown+` === 1 && `+row("job/07777")+` !== ""`)
	t.Logf("the search took %v", time.Since(start).Round(time.Millisecond))
	if !eval[bool](t, ctx, `window.marker === 1 && location.search === "?q=07777"`) {
		t.Error("the search has loaded the page again, or is not in its address")
	}
	do(t, ctx, chromedp.Reload())
	until(t, ctx, "the one that is searched, after a reload", shown+` === 1 && `+row("job/07777")+` !== ""`)

	do(t, ctx, chromedp.Navigate(url+"/?q=job"))
	until(t, ctx, "a next page", `document.querySelector("#pager a[rel=next]") !== null`)
	do(t, ctx, chromedp.Evaluate[chromedp.Void](`document.querySelector("#pager a[rel=next]").click()`))
	until(t, ctx, "the second page", row("job/00100")+` !== "" && `+row("job/00099")+` === ""`)
	do(t, ctx, chromedp.Navigate(url+"/?page=100"))
	until(t, ctx, "the last lock", `document.querySelector("#locks tr:last-child th")?.textContent === "job/09999"`)
	do(t, ctx, chromedp.Navigate(url+"/?page=5000"))
	until(t, ctx, "the last page in place of one beyond it", shown+` === 100 && `+row("job/09999")+` !== ""`)
	if n := eval[int](t, ctx, `document.querySelectorAll("*").length`); n > 6000 {
		t.Errorf("the page has %d elements", n)
	}
}
