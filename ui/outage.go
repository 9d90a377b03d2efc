package ui

import (
	"fmt"
	"slices"
	"time"
)

// This file says what is wrong, and what that means.

// asOfText says when what is shown was so.
func (s *snapshot) asOfText() markup {
	return either(s.asOf.IsZero(), "nothing is known yet", join("as of ", clock(s.asOf)))
}

// fresh says whether the page shows what is so now. It does while enough nodes
// answer.
func (s *snapshot) fresh() markup {
	return either(s.err == nil, `<span class="on">live</span>`, fill(`<span class="off">not live: %</span>`, s.asOfText()))
}

// notice says which nodes are out of service and since when, from when on nothing
// is known, and what that means for locks; empty if all is well.
func (s *snapshot) notice() markup {
	n, reachable := serving(s.nodes), 0
	for i := range s.nodes {
		if s.nodes[i].health != noAnswer {
			reachable++
		}
	}
	switch {
	case s.at.IsZero():
		return notice("danger", "The nodes have not answered yet.", "")
	case s.err != nil && reachable < s.need():
		return notice("danger", fmt.Sprintf("%d of %s reachable; quorum is %d. Locks are unavailable.", reachable, count(len(s.nodes), "node"), s.need()),
			join(s.outOfService(), s.lastKnown(),
				fill(`<p>No lock can be acquired or extended until % answer: <b>redlatch doctor</b> says why they do not.</p>`+
					`<p>A holder loses its lock at its deadline, and its program is notified%. %</p>`, count(s.need(), "node"), s.lastDeadline(), either(s.pulse.Guarded,
					"A node that comes back without its data is quarantined first, so nobody gets a lock that another still holds.",
					"The restart guard is off: a node that comes back without its data may grant a lock that another still holds."))))
	case s.err != nil:
		return notice("danger", errorText(s.err), join(s.outOfService(), s.lastKnown()))
	case n < s.need():
		return notice("danger", fmt.Sprintf("%d of %s in service; quorum is %d. Locks are unavailable.", n, count(len(s.nodes), "node"), s.need()),
			join(s.outOfService(), s.advice(), "<p>A lock that a majority still has is extended. One that nodes have forgotten is not on this page: its holder may believe in it until the wait is over.</p>"))
	case n < len(s.nodes):
		more := "no further failure"
		if left := n - s.need(); left > 0 {
			more = count(left, "further failure")
		}
		return notice("warning", fmt.Sprintf("%d of %s in service. Locks work; %s tolerated.", n, count(len(s.nodes), "node"), more), join(s.outOfService(), s.advice()))
	}
	return ""
}

func notice(class, headline string, more markup) markup {
	return fill(`<div class="notice %"><strong>%</strong>%</div>`, class, headline, more)
}

// advice says when nodes are back in service, and which command helps.
func (s *snapshot) advice() markup {
	is := func(h health) bool {
		return slices.ContainsFunc(s.nodes, func(n nodeHealth) bool { return n.health == h })
	}
	out := serving(s.nodes) < s.need()
	switch {
	case is(unmarked):
		return fill(`<p>The next attempt to lock, or <b>redlatch init</b>, starts a wait of %%.</p>`,
			spell(s.pulse.Quarantine.Round(time.Second)), when(out, "; nobody gets a lock before its end"))
	case is(quarantined) && !out:
		return `<p>It grants no lock before then, so restart no other node: <b>redlatch doctor --ready -w 2m</b> waits for it.</p>`
	}
	return join("<p>", when(out, fill("Nobody gets a lock until % are in service: ", count(s.need(), "node"))),
		either(is(quarantined), "<b>redlatch doctor --ready -w 2m</b> waits for it.</p>", "<b>redlatch doctor</b> says why, and what to do.</p>"))
}

// outOfService lists the nodes that are not in service, and since when.
func (s *snapshot) outOfService() markup {
	var m markup
	for i := range s.nodes {
		n := &s.nodes[i]
		if n.health == inService {
			continue
		}
		is, more := string(n.health), fill(": %", n.why)
		switch n.health {
		case noAnswer:
			is, more = "unreachable", ""
		case quarantined:
			is, more = "quarantined", fill(", until % (%)", clock(n.until), n.why)
		}
		m = join(m, fill("<li><b>%</b> % since %%</li>", address(n.short), is, clock(n.since), more))
	}
	return when(m != "", fill("<ul>%</ul>", m))
}

// lastKnown says what a page without a quorum shows.
func (s *snapshot) lastKnown() markup {
	if s.asOf.IsZero() {
		return "<p>What is shown of locks is incomplete: a quorum has never answered this page.</p>"
	}
	return fill("<p>The locks on this page are as the nodes reported them at %. They may have changed since.</p>", clock(s.asOf))
}

// lastDeadline says when the last of the locks that are shown expires; empty if
// none does.
func (s *snapshot) lastDeadline() markup {
	var last time.Time
	for i := range s.locks {
		for j := range s.locks[i].holders {
			if h := &s.locks[i].holders[j]; h.until.After(last) {
				last = h.until
			}
		}
	}
	return when(!last.IsZero(), fill("; of the locks shown, the last expires at %, or later if it was extended after they were read", clock(last)))
}
