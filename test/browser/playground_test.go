package browser

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// playground builds the playground once, and returns its folder.
var playground = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(folder, "playground")
	out, err := exec.Command("../../scripts/playground.sh", dir).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("playground.sh: %w\n%s", err, out)
	}
	return dir, nil
})

// openPlayground opens the playground in a new window, by an address that it is
// given the folder for.
func openPlayground(t *testing.T, address func(dir string) string, before ...func(context.Context)) context.Context {
	t.Helper()
	ctx := tab(t)
	dir, err := playground()
	must(t, err)
	for _, do := range before {
		do(ctx)
	}
	do(t, ctx, chromedp.Navigate(address(dir)))
	until(t, ctx, "the playground", `!document.querySelector("main").hidden && state !== null`)
	return ctx
}

func fromAFile(dir string) string { return "file://" + dir + "/index.html" }

// reduced has a visitor ask for reduced motion, in a colour scheme.
func reduced(t *testing.T, scheme string) func(context.Context) {
	return func(ctx context.Context) {
		call(t, ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
		})
	}
}

// tell tells a story to its end, and returns what the page said on the way.
func tell(t *testing.T, ctx context.Context, name string, each func(step int)) string {
	t.Helper()
	eval[bool](t, ctx, fmt.Sprintf(`document.querySelector("[data-story='%s']").click(), true`, name))
	var said strings.Builder
	steps := eval[int](t, ctx, `state.Story.Steps`)
	for i := range steps {
		eval[bool](t, ctx, `$("next").click(), state.Story.Running && $("next").click(), true`)
		until(t, ctx, fmt.Sprintf("the end of step %d of %s", i+1, name), fmt.Sprintf(`state.Story.At === %d && !state.Story.Running && $("then").textContent !== ""`, i+1))
		if wrong := eval[string](t, ctx, `$("wrong").textContent`); wrong != "" {
			t.Errorf("%s, step %d: %s", name, i+1, wrong)
		}
		fmt.Fprintln(&said, eval[string](t, ctx, `$("verdict").innerText + "\n" + $("resource").innerText + "\n" + $("log").innerText + "\n" + $("then").className + ": an outcome"`))
		if each != nil {
			each(i + 1)
		}
	}
	return said.String()
}

// maxProgram is how large the program may be, compressed.
const maxProgram = 2 << 20

func TestPlaygroundTellsEveryStoryFromAFile(t *testing.T) {
	t.Parallel()
	ctx := openPlayground(t, fromAFile)
	if size := eval[int](t, ctx, `atob(worldProgram).length`); size > maxProgram {
		t.Errorf("the program has %d bytes, compressed", size)
	}
	names := eval[[]string](t, ctx, `[...document.querySelectorAll("[data-story]")].map(b => b.dataset.story).filter(Boolean)`)
	if want := []string{"paused", "dead", "split", "restart", "herd", "no-tokens"}; !slices.Equal(names, want) {
		t.Fatal("the stories are", names)
	}
	for _, name := range names {
		said := tell(t, ctx, name, nil)
		for what, in := range map[string][]string{
			"refused ✓":              {"paused", "restart"},
			"taken, though stale ✕":  {"no-tokens"},
			"bad: an outcome":        {"restart", "no-tokens"},
			"Two holders at once":    {"restart"},
			"Beyond what is promise": {"restart"},
			"it is quarantined":      {"restart", "dead"},
			"by its own clock":       {"paused", "dead", "split", "restart", "no-tokens"},
			"Please report this":     {},
		} {
			if got, want := strings.Contains(said, what), slices.Contains(in, name); got != want {
				t.Errorf("%s: that the page says %q is %v", name, what, got)
			}
		}
		if command := eval[string](t, ctx, `$("test").textContent`); command != "go test -v -run Story/"+name+" ./internal/test/world" {
			t.Errorf("%s is run by %s", name, command)
		}
	}
	if foreign := eval[[]string](t, ctx, `performance.getEntriesByType("resource").map(e => e.name).filter(n => !n.startsWith("file:") && !n.startsWith("data:"))`); len(foreign) > 0 {
		t.Error("the page has loaded", foreign)
	}
}

// TestPlaygroundNeedsNoNetworkAndNoPointer has the server gone as soon as the page
// is loaded. All that is done is done with the keyboard.
func TestPlaygroundNeedsNoNetworkAndNoPointer(t *testing.T) {
	t.Parallel()
	var server *httptest.Server
	ctx := openPlayground(t, func(dir string) string {
		server = httptest.NewServer(http.FileServer(http.Dir(dir)))
		t.Cleanup(server.Close)
		return server.URL
	})
	server.Close()
	press := func(what, keys string) {
		t.Helper()
		for range 80 {
			if eval[bool](t, ctx, fmt.Sprintf(`(document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent).trim() === %q`, what)) {
				do(t, ctx, chromedp.KeyEvent(keys))
				return
			}
			do(t, ctx, chromedp.KeyEvent(kb.Tab))
		}
		t.Fatalf("no way to %q with the Tab key", what)
	}
	press("Free play", kb.Enter)
	until(t, ctx, "free play", `state.Story === null`)
	until(t, ctx, "a holder, as time passes", `state.Clients.some(c => c.Holds)`)
	press("One event", kb.Enter)
	until(t, ctx, "that time stands still", `!playing`)
	press("Pause", " ")
	until(t, ctx, "a paused client", `state.Clients[0].Paused`)
	press("Cut the link between Ann and server 4", " ")
	until(t, ctx, "a link that is cut", `state.Clients[0].Cut[3] && document.activeElement.getAttribute("aria-pressed") === "true"`)
	press("Restart server 2 empty", kb.Enter)
	until(t, ctx, "a server that has to be marked", `state.Servers[1].Quarantine === 0 && $("servers").innerText.includes("grants nothing")`)
	press("Set the clock of server 3 by 5 seconds", kb.Enter)
	until(t, ctx, "a clock that is ahead", `state.Servers[2].Skew === 5 && $("verdict").innerText.includes("Beyond what is promised")`)
}

// TestPlaygroundCanBeReadOnEveryScreen looks at widths, contrast and motion, in the
// story that has the most to show.
func TestPlaygroundCanBeReadOnEveryScreen(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"light", "dark"} {
		ctx := openPlayground(t, fromAFile, reduced(t, scheme))
		tell(t, ctx, "herd", func(step int) { narrow(t, ctx, fmt.Sprint("step ", step)) })
		canBeRead(t, ctx, scheme)
		if small := eval[[]string](t, ctx, `[...document.querySelectorAll("button, select")].filter(b => b.checkVisibility() && Math.min(b.offsetWidth, b.offsetHeight) < 24).map(b => b.outerHTML)`); len(small) > 0 {
			t.Errorf("too small for a finger: %s", small)
		}
		eval[bool](t, ctx, `$("speed").value = "0.2", open(""), true`)
		until(t, ctx, "messages in flight", `state.Flights?.length > 0`)
		if eval[bool](t, ctx, `document.querySelector(".dot") !== null`) {
			t.Error("dots move, though the visitor asked for reduced motion")
		}
	}
}
