package browser

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// watchConsole fails the test if a script of the page throws, anything opens a
// dialog, or the browser reports an error that is not expected.
func watchConsole(t *testing.T, ctx context.Context, expected []string) {
	var mu sync.Mutex
	var wrong []string
	add := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		wrong = append(wrong, what)
	}
	messages, dialogs := chromedp.Console(ctx), chromedp.Events(ctx, page.JavascriptDialogOpening)
	var readers sync.WaitGroup
	readers.Go(func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			known := slices.ContainsFunc(expected, func(text string) bool { return strings.Contains(m.Text, text) })
			if m.IsException() || m.Type == "error" && !known {
				add(m.String())
			}
		}
	})
	readers.Go(func() {
		for d, err := range dialogs {
			if err != nil {
				return
			}
			add("a dialog: " + d.Message)
			chromedp.Call(ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true})
		}
	})
	t.Cleanup(func() {
		chromedp.Cancel(ctx)
		readers.Wait()
		for _, w := range wrong {
			t.Errorf("the page had: %s", w)
		}
	})
}
