package browser

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/redlatch/redlatch/ui"
)

var update = flag.Bool("update", false, "write the pictures of the documentation anew")

// TestLightAndDarkCanBeRead has the browser compute the contrast of every text
// in both colour schemes, and writes the pictures with -update.
func TestLightAndDarkCanBeRead(t *testing.T) {
	t.Parallel()
	stage := newShowcase(t)
	url := serve(t, stage.client, ui.Options{})
	ctx := watch(t, url+"/")
	stage.play(t, func(what string) {
		t.Helper()
		until(t, ctx, what, says("#lately", what))
	})
	for _, scheme := range []string{"light", "dark"} {
		call(t, ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
		})
		for _, path := range []string{"/", "/lock?name=deploy%2Ffrontend"} {
			do(t, ctx, chromedp.EmulateViewport(1280, 800), chromedp.Navigate(url+path))
			until(t, ctx, "live", isLive)
			if path == "/" {
				picture(t, ctx, "ui-"+scheme+".png")
			}
			canBeRead(t, ctx, scheme+", "+path)
		}
	}
}

// lowContrast is an expression for the texts whose contrast with what is behind
// them is below that of WCAG AA, 4.5 to 1.
const lowContrast = `(() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const known = {};
  const rgba = (c) => known[c] ??= paint(c);
  const paint = (c) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = c; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const lum = ([r, g, b]) => { const f = (v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }; return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
  const behind = (e) => { for (; e; e = e.parentElement) { const c = rgba(getComputedStyle(e).backgroundColor); if (c[3] === 255) return c; } return [255, 255, 255, 255]; };
  const low = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !e.checkVisibility() || e.closest(".unseen")) continue;
    const a = lum(rgba(getComputedStyle(e).color)), b = lum(behind(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) low.push(ratio.toFixed(2) + " for " + JSON.stringify(walker.currentNode.data.trim()));
  }
  return low;
})()`

// canBeRead checks contrast and width of what the page shows now.
func canBeRead(t *testing.T, ctx context.Context, what string) {
	t.Helper()
	for _, low := range eval[[]string](t, ctx, lowContrast) {
		t.Errorf("%s: %s", what, low)
	}
	narrow(t, ctx, what)
}

// narrow checks that the page as a whole need not be scrolled sideways, on a small
// screen and on larger ones.
func narrow(t *testing.T, ctx context.Context, path string) {
	t.Helper()
	for _, width := range []int64{320, 390, 820, 1280} {
		do(t, ctx, chromedp.EmulateViewport(width, 800))
		const most = `Math.max(document.documentElement.scrollWidth, ...[...document.querySelectorAll(".scroll")].map((e) => e.scrollWidth - e.clientWidth + innerWidth))`
		if wide := eval[int64](t, ctx, most); wide > width {
			t.Errorf("%s on a screen of %d pixels is %d wide, or one of its tables", path, width, wide)
		}
		if torn := eval[[]string](t, ctx, `[...document.querySelectorAll(".port")].filter((e) => e.getClientRects().length > 1).map((e) => e.innerText)`); len(torn) > 0 {
			t.Errorf("%s on a screen of %d pixels breaks %q", path, width, torn)
		}
	}
}

// picture writes what the window shows to the documentation, with -update.
func picture(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	if !*update {
		return
	}
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	must(t, err)
	must(t, os.WriteFile(filepath.Join("..", "..", "docs", "img", name), png, 0o644))
}
