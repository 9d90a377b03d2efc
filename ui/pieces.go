package ui

// The pieces of the pages. Each is used for the first view and for what is sent
// later.

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

// orNothing is a text, or a dash.
func orNothing(text string) markup {
	if text == "" {
		return nothing
	}
	return fill("%", text)
}

// ago is how long ago a moment is.
func ago(m *moment) markup {
	if m == nil {
		return nothing
	}
	return fill(`<time datetime="%" data-ago="%" title="%">%</time>`, m.ISO(), m.Milli(), m.ISO(), m.Ago())
}

// left is how far ahead a moment is.
func left(m *moment) markup {
	return fill(`<time datetime="%" data-left="%" title="%">%</time>`, m.ISO(), m.Milli(), m.ISO(), m.Left())
}

// clock is a time of day.
func clock(m *moment) markup {
	return fill(`<time datetime="%" data-clock="%" title="%">%</time>`, m.ISO(), m.Milli(), m.ISO(), m.Clock())
}

// ends is when something expires.
func ends(until *moment, never bool) markup {
	switch {
	case never:
		return `<span class="warning">never</span>`
	case until == nil:
		return nothing
	}
	return left(until)
}

// lockLink is a link to the page of a lock.
func lockLink(name string) markup {
	return fill(`<a href="%">%</a>`, view{lock: name}.link(), shown(name))
}

// who names a holder.
func (r *holderRow) who() markup {
	return join(when(r.Kind != "", fill(`<span class="kind">%</span> `, r.Kind)), when(r.Owner != "", shown(r.Owner)))
}

func (r *lockRow) row() markup {
	holders := either(r.State == "held",
		when(r.Shared != "", fill(`<span class="badge">%</span>`, r.Shared)),
		fill(`<span class="badge %">%</span>`, r.State, plainly(r.State)))
	for i := range r.Holders {
		h := &r.Holders[i]
		holders = join(holders, fill(`<span class="who">%%</span>`, h.who(), when(h.Role != "", fill(` <small>%</small>`, h.Role))))
	}
	holders = join(holders, when(r.More > 0, fill(` <small>and % more</small>`, r.More)))
	since, until, token := nothing, nothing, nothing
	if len(r.Holders) > 0 {
		h := &r.Holders[0]
		since, until, token = ago(h.Since), ends(h.Until, h.Never), orNothing(h.Token)
	}
	// The roles keep it a table on small screens, where the style makes it none.
	return fill(`<tr id="%" role="row" data-mark="%"><th scope="row" role="rowheader" class="name">%</th><td role="cell" class="holder">%</td>`+
		`<td role="cell" class="num" data-label="held for">%</td><td role="cell" class="num" data-label="expires in">%</td>`+
		`<td role="cell" class="num waiting" data-label="waiting clients">%</td><td role="cell" class="num token">%</td><td role="cell" class="num votes">%/%</td></tr>`,
		r.ID, r.Mark, lockLink(r.Name), holders, since, until,
		either(r.Waiting > 0, fill(`<b class="warning">%</b>`, r.Waiting), `<span class="no">0</span>`),
		token, r.Naming, r.Nodes)
}

func (r *nodeRow) row() markup {
	var rest markup
	if r.Until != nil {
		rest = fill(` <small>for another %</small>`, left(r.Until))
	}
	rest = join(rest, when(r.Why != "", fill(`<small class="why">%</small>`, shown(r.Why))))
	return fill(`<tr id="%" data-mark="%"><th scope="row"><span class="name">%</span> <span class="health %">%</span>%</th><td class="num">%</td><td class="num">%</td></tr>`,
		r.ID, r.Health, shown(r.Name), r.Alarm, r.Health, rest,
		either(r.RoundTrip != "", fill(`<span title="%">%</span>`, r.Trips, r.RoundTrip), nothing),
		either(r.Clock != "", fill(`<span class="%" title="give or take %">%</span>`, r.ClockAlarm, r.ClockError, r.Clock), nothing))
}

func (r *holderRow) row() markup {
	return fill(`<tr id="%"><th scope="row" class="name">%%</th><td class="num">%</td><td class="num">%</td><td class="num token">%</td><td class="num">%/%</td></tr>`,
		r.ID, r.who(), when(r.Role != "", fill(` <span class="badge">%</span>`, r.Role)),
		ago(r.Since), ends(r.Until, r.Never), orNothing(r.Token), r.Naming, r.Nodes)
}

func (r *waiterRow) row() markup {
	return fill(`<tr id="%"><td class="num place">%</td><th scope="row" class="name">%</th><td>%</td><td class="num">%</td><td class="num">%/%</td></tr>`,
		r.ID, r.Place, shown(r.Owner), r.Wish, ago(r.Since), r.Naming, r.Nodes)
}

func (r *answerRow) row() markup {
	if r.Err != "" {
		return fill(`<tr id="%"><th scope="row" class="name">%</th><td colspan="5"><span class="danger">%</span></td></tr>`, r.ID, shown(r.Node), shown(r.Err))
	}
	var holder markup = `<span class="no">free</span>`
	if r.Owner != "" {
		holder = join(shown(r.Owner), when(r.More > 0, fill(` <small>and % more</small>`, r.More)))
	}
	return fill(`<tr id="%"><th scope="row" class="name">%</th><td>%</td><td class="num">%</td><td class="num token">%</td><td class="num token">%</td><td class="num">%</td></tr>`,
		r.ID, shown(r.Node), holder, ends(r.Until, r.Never), orNothing(r.Token), orNothing(r.Fence), r.Waiting)
}

func (e *event) render() markup {
	m := clock(&moment{at: e.at})
	about := join(when(e.lock != "", join(lockLink(e.lock), " ")), when(e.node != "", join(shown(e.node), " ")),
		shown(e.text), when(e.who != "", join(" ", shown(e.who))))
	return fill(`<li id="%" class="%">% <span>%</span></li>`, e.id, string(e.kind), m, about)
}

// plainly is a state as the list shows it.
func plainly(state string) string {
	if state == "waited" {
		return "free"
	}
	return state
}
