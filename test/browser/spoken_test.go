package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"

	"github.com/redlatch/redlatch/ui"
)

// TestAScreenReaderFindsTablesAndLabels reads the tree that screen readers get,
// on a wide screen and on a narrow one.
func TestAScreenReaderFindsTablesAndLabels(t *testing.T) {
	t.Parallel()
	url, _ := small(t, ui.Options{})
	ctx := tab(t)
	for _, width := range []int64{1280, 360} {
		do(t, ctx, chromedp.EmulateViewport(width, 800), chromedp.Navigate(url+"/"))
		until(t, ctx, "live", isLive)
		found := map[string]bool{}
		for _, n := range call(t, ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes {
			if !n.Ignored {
				found[text(n.Role)+" "+text(n.Name)] = true
			}
		}
		for _, want := range []string{
			"heading Locks", "heading Nodes", "heading Recent events", "searchbox Search names and holders",
			"table Locks that are held or contended", "columnheader Held by", "rowheader secret-name", "link secret-name",
			"table Nodes; 2 in service are needed", "status ", "link Skip to the locks",
		} {
			if !found[want] {
				t.Errorf("on a screen of %d pixels there is no %q", width, want)
			}
		}
	}
}

func text(v *accessibility.Value) string {
	if v == nil {
		return ""
	}
	return strings.Trim(string(v.Value), `"`)
}
