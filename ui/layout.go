package ui

// The parts of the pages that are no rows, and what else has a slot in them.

// slot returns what both pages have.
func (p *page) slot(name string) markup {
	switch name {
	case "title":
		return fill("%", p.Title)
	case "events":
		return fill("%", p.Events)
	case "now":
		return fill("%", p.Now)
	case "asof":
		if p.At == nil {
			return "waiting for the nodes"
		}
		return join("as of ", clock(p.At))
	}
	panic("ui: no slot " + name)
}

// slot returns what only the list has.
func (p *listPage) slot(name string) markup {
	switch name {
	case "query":
		return fill("%", p.Query)
	case "sorted":
		return when(p.Sort != "", fill(`<input type="hidden" name="sort" value="%">`, p.Sort))
	case "need":
		return fill("%", p.Need)
	case "clocks":
		return fill("%", p.Clocks)
	case "byname":
		return p.column(byName, "ascending")
	case "byage":
		return p.column(byAge, "descending")
	case "bywaiting":
		return p.column(byWaiting, "descending")
	}
	return p.page.slot(name)
}

// column returns the attributes of the head of a column, by which the list may
// be sorted, and the start of the link that sorts it.
func (p *listPage) column(o order, way string) markup {
	sorted := when(p.Sort == string(o), fill(` aria-sort="%"`, way))
	return fill(`%><a href="%">`, sorted, view{q: p.Query, sort: o}.link())
}

// slot returns what only the page of a lock has.
func (p *lockPage) slot(name string) markup {
	switch name {
	case "name":
		return shown(p.Lock.Name)
	case "plain-name":
		return fill("%", visibleText(p.Lock.Name))
	}
	return p.page.slot(name)
}

func (p *page) problem() markup { return when(p.Problem != "", fill("<strong>%</strong>", p.Problem)) }

func (p *listPage) summary() markup {
	class := "fine"
	switch {
	case p.Serving < p.Need:
		class = "danger"
	case p.Serving < len(p.Nodes):
		class = "warning"
	}
	return fill(`<span><b>%</b> held</span><span><b>%</b> contended</span><span><b>%</b> %</span><span class="%"><b>% of %</b> nodes in service</span>`,
		p.Held, p.Waited, p.Waiting, either(p.Waiting == 1, "waiter", "waiters"), class, p.Serving, len(p.Nodes))
}

func (p *listPage) found() markup {
	m := fill("%", count(p.All, "lock"))
	if p.Query != "" {
		m = fill("% of % found", p.Matches, count(p.All, "lock"))
	}
	m = join(m, when(p.Pages > 1, fill(", % to % shown", p.First, p.Last)))
	return join(m, when(p.Query != "" && p.Matches == 0,
		fill(`. <a href="%">Look at the lock % itself</a>: locks of other clients are not listed.`, view{lock: p.Query}.link(), shown(p.Query))))
}

func (p *listPage) pager() markup {
	if p.Pages < 2 {
		return ""
	}
	return join(
		either(p.Previous != "", fill(`<a rel="prev" href="%">Previous</a>`, p.Previous), `<span class="no">Previous</span>`),
		fill(`<span>Page % of %</span>`, p.Page, p.Pages),
		either(p.Next != "", fill(`<a rel="next" href="%">Next</a>`, p.Next), `<span class="no">Next</span>`))
}

func (p *lockPage) state() markup {
	l := p.Lock
	if l.State == "" {
		return "not known"
	}
	return join(fill(`<span class="badge %">%</span> %`, l.State, plainly(l.State), l.Saying),
		when(l.Fence != "", fill(`; the highest token is <span class="token">%</span>`, l.Fence)),
		when(l.Hidden > 0, fill(`; % more holders are not shown`, l.Hidden)))
}

func (p *lockPage) queue() markup {
	return when(p.Lock.More > 0, fill("and % more behind them", p.Lock.More))
}

func (p *lockPage) completed() markup {
	l := p.Lock
	if len(l.Completed) == 0 && l.Since == nil {
		return ""
	}
	m := join(`<h2>Completed</h2><p class="note">Occurrences of the job that are completed`)
	if l.Since != nil {
		m = join(m, fill(`, remembered since <time datetime="%">%</time>`, l.Since.ISO(), l.Since.ISO()))
	}
	m = join(m, `.</p><ul class="completed">`)
	for i := range l.Completed {
		k := &l.Completed[i]
		m = join(m, fill(`<li>% <small>% of % nodes</small></li>`, shown(k.Occurrence), k.Naming, k.Nodes))
	}
	return join(m, when(len(l.Completed) == 0, `<li class="none">None.</li>`), "</ul>")
}

func (p *lockPage) command() markup {
	if p.Lock.Command == "" {
		return ""
	}
	return fill(`<h2>Break it</h2><p class="note" id="break-note">This page changes nothing. The command force-releases the lock. `+
		`It does not stop the holders: stop them first if you can.</p><div class="command"><code id="break-command" dir="ltr" translate="no">%</code> `+
		`<button type="button" data-copy="break-command" aria-describedby="break-note" hidden>Copy</button></div>`, p.Lock.Command)
}
