package browser

import (
	"cmp"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/ui"
)

// hostile are names and how the page shows each.
var hostile = map[string]string{
	`<script>alert(1)</script>`:              ``,
	`"><img src=x onerror=alert(1)>`:         ``,
	`' onmouseover='alert(1)`:                ``,
	`</title><script>alert(1)</script>`:      ``,
	`javascript:alert(1)`:                    ``,
	`{{7*7}} %s %d ${alert(1)}`:              ``,
	`&lt;b&gt;&amp;`:                         ``,
	"a\u202etxt.exe":                         `a⟨U+202E⟩txt.exe`,
	"zero\u200bwidth\u00a0space\u2066\u2069": `zero⟨U+200B⟩width⟨U+00A0⟩space⟨U+2066⟩⟨U+2069⟩`,
	"  two  spaces ":                         ``,
	"עברית/عربى":                             ``,
	strings.Repeat("<b>x</b>", 64):           ``, // the longest: 512 bytes
}

// TestHostileNamesAreShownAsText: nothing of them becomes an element, a script
// or an attribute, in the list, in the page of each lock, and in what is sent
// later.
func TestHostileNamesAreShownAsText(t *testing.T) {
	t.Parallel()
	page, clients, servers := quorum(t, 1, `<img src=x onerror=alert(2)>`)
	url0 := serve(t, page, ui.Options{})
	ctx := watch(t, url0+"/")
	for name := range hostile { // they arrive while the page is open
		lock(t, clients[0], name, redlatch.LockOptions{})
	}
	// Owners of other clients may be any bytes.
	servers[0].Do("SET", "plain", "\x1b]0;<script>alert(3)</script>\x07\u202e\xff")
	servers[0].Do("HSET", "hash", "<script>alert(4)</script>", "1")
	const evil = `document.querySelectorAll("main script, main img, main b:not(.warning), main [onmouseover], main [onerror], title script").length`
	for _, path := range []string{"live", "/"} {
		if path != "live" {
			do(t, ctx, chromedp.Navigate(url0+path))
		}
		for name, as := range hostile {
			as = cmp.Or(as, name)
			until(t, ctx, name, row(as)+` !== ""`)
		}
		if n := eval[int](t, ctx, evil); n != 0 {
			t.Errorf("%s: %d elements are made of names", path, n)
		}
		if !eval[bool](t, ctx, `document.querySelector("#lately").innerText.includes("onerror=alert(2)")`) {
			t.Error("the owner is not shown")
		}
	}
	for name, as := range hostile {
		as = cmp.Or(as, name)
		do(t, ctx, chromedp.Navigate(url0+"/"))
		link := eval[string](t, ctx, `[...document.querySelectorAll("#locks a")].find(a => a.textContent === `+quoted(as)+`).getAttribute("href")`)
		if want := "lock?name=" + url.QueryEscape(name); link != want {
			t.Errorf("the link of %q is %q", name, link)
		}
		do(t, ctx, chromedp.Navigate(url0+"/"+link))
		if h := eval[string](t, ctx, `document.querySelector("h1").textContent`); h != as {
			t.Errorf("the page of %q has the heading %q", name, h)
		}
		if !eval[bool](t, ctx, `document.title.startsWith(`+quoted(strings.Join(strings.Fields(as), " "))+`)`) {
			t.Errorf("the page of %q has the title %q", name, eval[string](t, ctx, `document.title`))
		}
		if n := eval[int](t, ctx, evil); n != 0 {
			t.Errorf("the page of %q: %d elements are made of it", name, n)
		}
	}
	do(t, ctx, chromedp.Navigate(url0+"/lock?name=plain"))
	until(t, ctx, "the owner of another client", `document.querySelector("#holders").innerText.includes("<script>alert(3)</script>")`)
	do(t, ctx, chromedp.Navigate(url0+"/lock?name=hash"))
	until(t, ctx, "the command for a foreign key", `document.querySelector("#break-command").textContent === "redlatch break --foreign hash"`)
}
