package ui

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/node"
)

// This file is the page of one lock.

// maxHolders is how many holders of one lock are shown.
const maxHolders = 100

// oneParts renders what may change on it. flags are those of the command that
// breaks the lock.
func oneParts(s *snapshot, d *detail, v view, flags []string, w watch) *parts {
	about := slices.DeleteFunc(slices.Clone(s.lates), func(e event) bool { return e.lock != v.lock })
	l := cmp.Or(d.state, &admin.LockState{}) // nothing is known of it
	problem, fresh := s.notice(), s.fresh()
	if d.err != nil && s.err == nil { // the nodes were asked again
		problem, fresh = notice("danger", errorText(d.err), ""), fill(`<span class="off">not live: %</span>`, s.asOfText())
	}
	p := newParts(s, problem, fresh, about)
	holders := p.list("holders")
	for _, h := range l.Holders[:min(len(l.Holders), maxHolders)] {
		holders.add(w.holderRow(newHolder(h, d.at), len(l.Nodes)))
	}
	if last := s.lock(v.lock); d.err != nil && len(l.Holders) == 0 && last != nil {
		w.stale = true
		for _, h := range last.holders[:min(len(last.holders), maxHolders)] {
			holders.add(w.holderRow(h, last.nodes))
		}
	}
	holders.orNone("holders", 5, either(d.err == nil, "Not held.", "Not known."))
	waiters := p.list("waiters")
	for i, q := range l.Waiters {
		waiters.add(w.waiterRow(i+1, q, len(l.Nodes)))
	}
	waiters.orNone("waiters", 5, either(d.err == nil, "No waiters.", "Not known."))
	answers := p.list("answers")
	for i := range l.Nodes {
		name := l.Nodes[i].Node
		if i < len(s.nodes) {
			name = s.nodes[i].short
		}
		answers.add(w.answerRow(i, name, l, d.at))
	}
	answers.orNone("answers", 6, "No node has answered.")
	p.texts["state"] = join(either(d.state == nil, "not known", state(l)), when(w.stale, fill("; the holders are shown %", s.asOfText())))
	p.texts["queue"] = when(l.Waiting > len(l.Waiters), fill("and % more behind them", l.Waiting-len(l.Waiters)))
	p.texts["completed"] = completed(l)
	p.texts["command"] = command(l, flags)
	return p
}

// oneFixed returns what else has a slot in it.
func (u *UI) oneFixed(s *snapshot, v view) map[string]markup {
	fixed := u.fixed(s, v)
	fixed["name"] = shown(v.lock)
	fixed["plain-name"] = fill("%", visibleText(v.lock))
	return fixed
}

// state says how a lock is.
func state(s *admin.LockState) markup {
	return join(badge(string(s.State())), fill(" %", saying(s)),
		when(s.Fence != 0, fill(`; the highest token is <span class="token">%</span>`, tokenText(s.Fence))),
		when(len(s.Holders) > maxHolders, fill(`; % more holders are not shown`, len(s.Holders)-maxHolders)))
}

// saying is what there is to say about a lock's state.
func saying(s *admin.LockState) string {
	switch n := len(s.Nodes); s.State() {
	case admin.StateHeld:
		if h := s.Holders[0]; h.Slots > 0 || h.Shared {
			return "by " + count(h.Holders, "holder") + " together"
		}
		return fmt.Sprintf("on %d of %s", s.Naming(), count(n, "node"))
	case admin.StateSplit:
		return fmt.Sprintf("no majority of the %d nodes names the same holder", n)
	case admin.StateUnknown:
		return fmt.Sprintf("only %d of %s answer", s.Answered(), count(n, "node"))
	case admin.StateWaited:
		return "and contended"
	}
	return ""
}

// completed lists the completed occurrences of a job.
func completed(s *admin.LockState) markup {
	if len(s.Completed) == 0 && s.CompletedSince.IsZero() {
		return ""
	}
	m := join(`<h2>Completed</h2><p class="note">Occurrences of the job that are completed`)
	if since := s.CompletedSince; !since.IsZero() {
		m = join(m, fill(`, remembered since <time datetime="%">%</time>`, iso(since), iso(since)))
	}
	m = join(m, `.</p><ul class="completed">`)
	for _, k := range s.Completed {
		m = join(m, fill(`<li>% <small>% of % nodes</small></li>`, shown(k.Occurrence), k.Nodes, len(s.Nodes)))
	}
	return join(m, when(len(s.Completed) == 0, `<li class="none">None.</li>`), "</ul>")
}

// command shows the command that breaks a lock. Its name has the client's
// prefix: the command has none.
func command(s *admin.LockState, flags []string) markup {
	if len(s.Holders) == 0 {
		return ""
	}
	words := append([]string{"redlatch", "break"}, flags...)
	if s.Holders[0].Kind == redlatch.KindForeign {
		words = append(words, "--foreign")
	}
	key := s.Name
	for i := range s.Nodes {
		if s.Nodes[i].Err == nil && s.Nodes[i].Name != "" {
			key = s.Nodes[i].Name
			break
		}
	}
	if strings.HasPrefix(key, "-") {
		words = append(words, "--")
	}
	words = append(words, key)
	for i := range words {
		words[i] = shellWord(words[i])
	}
	return fill(`<h2>Break it</h2><p class="note" id="break-note">This page changes nothing. The command force-releases the lock. `+
		`It does not stop the holders: stop them first if you can.</p><div class="command"><code id="break-command" dir="ltr" translate="no">%</code> `+
		`<button type="button" data-copy="break-command" aria-describedby="break-note" hidden>Copy</button></div>`, strings.Join(words, " "))
}

// holderRow returns the id and the row of a holder.
func (w watch) holderRow(h holder, nodes int) (string, markup) {
	id := idOf("h", h.Owner, tokenText(h.Token), h.role())
	return id, fill(`<tr id="%"%><th scope="row" class="name">%%</th><td class="num">%</td><td class="num">%</td><td class="num token">%</td><td class="num">%/%</td></tr>`,
		id, when(w.stale, ` class="stale"`), h.who(), when(h.role() != "", fill(` <span class="badge">%</span>`, h.role())),
		w.ago(h.Since), w.ends(h.until, h.never()), number(h.Token), h.Nodes, nodes)
}

// waiterRow returns the id and the row of a waiter.
func (w watch) waiterRow(place int, q admin.WaiterState, nodes int) (string, markup) {
	id, wish := idOf("w", q.Owner, strconv.FormatInt(q.Since.UnixMicro(), 10)), "the whole lock"
	switch {
	case q.Slots > 0:
		wish = "one of " + count(q.Slots, "slot")
	case q.Shared:
		wish = "as a reader"
	}
	return id, fill(`<tr id="%"><td class="num place">%</td><th scope="row" class="name">%</th><td>%</td><td class="num">%</td><td class="num">%/%</td></tr>`,
		id, place, shown(q.Owner), wish, w.ago(q.Since), q.Nodes, nodes)
}

// answerRow returns the id and the row of what one node says.
func (w watch) answerRow(i int, name string, l *admin.LockState, at time.Time) (string, markup) {
	id, n := "a"+strconv.Itoa(i), &l.Nodes[i]
	if n.Err != nil {
		return id, fill(`<tr id="%"><th scope="row" class="name">%</th><td colspan="5"><span class="danger">%</span></td></tr>`, id, address(name), address(errorText(n.Err)))
	}
	var holder markup = `<span class="no">free</span>`
	until := nothing
	switch {
	case n.Owner == "" && n.Broken != 0 && n.Broken == n.Reply.Fence:
		holder = `<span class="warning">broken</span>`
	case n.Owner == "" && l.Held && n.Reply.Fence < l.Holders[0].Token:
		holder = `<span class="warning" title="it forgot the lock, or did not get it yet">not known here</span>`
	case n.Owner != "":
		holder = join(shown(n.Owner), more(len(n.Holders)-1))
		until = w.ends(at.Add(n.Reply.Left).Round(time.Second), n.Reply.Left == node.NoExpiry)
	}
	return id, fill(`<tr id="%"><th scope="row" class="name">%</th><td>%</td><td class="num">%</td><td class="num token">%</td><td class="num token">%</td><td class="num">%</td></tr>`,
		id, address(name), holder, until, number(n.Token), number(n.Reply.Fence), n.Waiting)
}
