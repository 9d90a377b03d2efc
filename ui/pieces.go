package ui

import (
	"time"

	"github.com/redlatch/redlatch"
)

// The pieces that both pages are made of. Each is used for the first view and
// for what is sent later.

const nothing markup = `<span class="no">–</span>`

// shown is a text that others wrote: isolated from what is around it, and with
// codes for what cannot be seen.
func shown(text string) markup {
	m := join("<bdi>")
	for _, part := range visible(text) {
		if part.Odd {
			m = join(m, fill(`<span class="odd">%</span>`, part.Text))
		} else {
			m = join(m, fill("%", part.Text))
		}
	}
	return join(m, "</bdi>")
}

// when is a piece if there is something to show.
func when(is bool, m markup) markup {
	if is {
		return m
	}
	return ""
}

// either is the one piece or the other.
func either(is bool, yes, no markup) markup {
	if is {
		return yes
	}
	return no
}

// more is how many are not shown.
func more(n int) markup { return when(n > 0, fill(` <small>and % more</small>`, n)) }

// number is a token, or a dash if there is none.
func number(t redlatch.Token) markup { return either(t != 0, fill("%", tokenText(t)), nothing) }

func tokenText(t redlatch.Token) string {
	if t == 0 {
		return ""
	}
	return t.String()
}

// watch shows times relative to now. If now is zero, the page's script writes
// them: otherwise every row would change in every second.
type watch struct {
	now   time.Time
	stale bool // what is shown is of an earlier time
}

// ago is how long ago a time is.
func (w watch) ago(t time.Time) markup {
	if t.IsZero() {
		return nothing
	}
	return w.element("ago", t, spell(w.now.Sub(t)))
}

// left is how far ahead a time is.
func (w watch) left(t time.Time) markup { return w.element("left", t, spell(t.Sub(w.now))) }

// ends is when something expires.
func (w watch) ends(until time.Time, never bool) markup {
	switch {
	case never:
		return `<span class="warning">never</span>`
	case until.IsZero():
		return nothing
	}
	return w.left(until)
}

func (w watch) element(kind markup, t time.Time, text string) markup {
	if w.now.IsZero() {
		text = ""
	}
	return element(kind, t, text)
}

// element shows a time. The script finds it by its kind.
func element(kind markup, t time.Time, text string) markup {
	return fill(`<time datetime="%" data-%="%" title="%">%</time>`, iso(t), kind, t.UnixMilli(), iso(t), text)
}

// iso is a time as machines read it, and people who want it exactly.
func iso(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// clock is a time of day.
func clock(t time.Time) markup { return element("clock", t, t.UTC().Format("15:04:05")+" UTC") }

// lockLink is a link to the page of a lock.
func lockLink(name string) markup {
	return fill(`<a href="%">%</a>`, view{lock: name}.link(), shown(name))
}

// who names a holder, and says which client has the lock if it is not one of
// ours.
func (h *holder) who() markup {
	var kind markup
	switch h.Kind {
	case redlatch.KindPlain:
		kind = "another client"
	case redlatch.KindForeign:
		kind = "a key of type"
	case redlatch.KindReserved:
		kind = "kept for the next waiter"
	}
	return join(when(kind != "", fill(`<span class="kind">%</span> `, kind)), when(h.Owner != "", shown(h.Owner)))
}

// badge is a state as the pages show it.
func badge(state string) markup {
	return fill(`<span class="badge %">%</span>`, state, either(state == "waited", "free", fill("%", state)))
}

func (e *event) render() markup {
	about := join(when(e.lock != "", join(lockLink(e.lock), " ")), when(e.node != "", join(address(e.node), ": ")),
		address(e.text), when(e.who != "", join(" ", shown(e.who))))
	return fill(`<li id="%" class="%">% <span>%</span></li>`, e.id, string(e.kind), clock(e.at), about)
}
