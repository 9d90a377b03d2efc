package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/redlatch/redlatch"
)

const (
	// waitShown is after how long a wait is worth a word.
	waitShown = 200 * time.Millisecond
	// waitRefresh is how often the line is brought up to date. Each time asks
	// the nodes, which changes nothing there.
	waitRefresh = 500 * time.Millisecond
)

// waiting is the line on a terminal that shows, while a lock is waited for, who
// has it and for how long yet.
type waiting struct {
	name   string
	nodes  []redlatch.Node
	screen *screen
	since  time.Time
	cancel context.CancelFunc
	over   chan struct{}
}

// showWaiting begins to show that a lock is waited for. It returns nil, and
// shows nothing, if that is not wanted or there is nobody to see it.
func (r *reporter) showWaiting(name string, nodes []redlatch.Node) *waiting {
	file, ok := r.w.(*os.File)
	if !ok || r.quiet || r.format == "json" || os.Getenv("TERM") == "dumb" {
		return nil
	}
	screen := openScreen(file)
	if screen == nil {
		return nil
	}
	w := &waiting{name: name, nodes: nodes, screen: screen, since: time.Now(), over: make(chan struct{})}
	var ctx context.Context
	ctx, w.cancel = context.WithCancel(context.Background())
	go w.run(ctx)
	return w
}

// stop takes the line away. Nothing is written after that.
func (w *waiting) stop() {
	if w == nil {
		return
	}
	w.cancel()
	<-w.over
}

func (w *waiting) run(ctx context.Context) {
	defer close(w.over)
	painted := false
	timer := time.NewTimer(waitShown)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			if painted && w.screen.ours() {
				w.screen.write("\r\x1b[K")
			}
			return
		case <-timer.C:
		}
		line := w.line(ctx)
		if ctx.Err() == nil && w.screen.ours() {
			w.screen.write(redraw(line, w.screen.width(), os.Getenv("NO_COLOR") == ""))
			painted = true
		}
		timer.Reset(waitRefresh)
	}
}

// redraw puts a line in the place of the last one. One that wrapped could not be
// taken back, so it is cut.
func redraw(line string, width int, colour bool) string {
	if width > 1 && utf8.RuneCountInString(line) >= width {
		line = string([]rune(line)[:width-2]) + "…"
	}
	if colour {
		line = "\x1b[2m" + line + "\x1b[0m"
	}
	return "\r\x1b[K" + line
}

// line says what is waited for.
func (w *waiting) line(ctx context.Context) string {
	who, answers := w.ask(ctx)
	waited := time.Since(w.since).Round(time.Second)
	switch {
	case answers <= len(w.nodes)/2:
		who = fmt.Sprintf(", but %d of %d nodes do not answer", len(w.nodes)-answers, len(w.nodes))
	case who != "":
		who = ", held by " + who
	}
	return fmt.Sprintf("redlatch: waiting for %q%s (%v so far)", w.name, who, waited)
}

// ask returns whom most nodes name as the holder, and how many answered.
func (w *waiting) ask(ctx context.Context) (who string, answers int) {
	ctx, cancel := context.WithTimeout(ctx, waitRefresh)
	defer cancel()
	replies := make([]redlatch.Reply, len(w.nodes))
	errs := make([]error, len(w.nodes))
	var asked sync.WaitGroup
	for i, n := range w.nodes {
		asked.Go(func() {
			replies[i], errs[i] = n.Do(ctx, redlatch.Request{Op: redlatch.OpInspect, Name: w.name})
		})
	}
	asked.Wait()
	votes := map[string]int{}
	for i, r := range replies {
		if errs[i] != nil {
			continue
		}
		answers++
		key := r.Status.String() + r.Value
		if votes[key]++; votes[key] > votes[""] && (r.Status == redlatch.Held || r.Status == redlatch.Foreign) {
			votes[""], who = votes[key], holderOf(r)
		}
	}
	return who, answers
}

// holderOf says who has a lock, in a form that is fit for a terminal.
func holderOf(r redlatch.Reply) string {
	h := redlatch.Holder{Kind: redlatch.KindLease, Left: r.Left}
	const digits = 32 // of the random part, before the owner
	switch {
	case r.Status == redlatch.Foreign:
		h.Kind, h.Owner = redlatch.KindForeign, r.Value
	case len(r.Value) > digits && r.Value[digits] == ':':
		h.Owner = r.Value[digits+1:]
	default:
		h.Kind, h.Owner = redlatch.KindPlain, strconv.QuoteToGraphic(r.Value[:min(len(r.Value), 64)])
	}
	if h.Left != redlatch.NoExpiry {
		h.Left = h.Left.Round(100 * time.Millisecond)
	}
	// Anybody may have written the value, and a terminal obeys what it is shown.
	return strings.Map(func(c rune) rune {
		if !unicode.IsGraphic(c) {
			return '�'
		}
		return c
	}, h.String())
}
