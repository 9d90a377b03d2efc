package ui

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/node"
)

// What the templates show. A row has an id, by which the script replaces it.

type lockRow struct {
	ID, Name, State string
	Shared          string // how many share it; empty for none
	Holders         []holderRow
	More            int // holders that are not named
	Waiting         int
	Naming, Nodes   int
	Mark            string // differs when the holders differ
}

type holderRow struct {
	ID, Owner, Kind, Role, Token string
	Since, Until                 *moment
	Never                        bool
	Naming, Nodes                int
}

type nodeRow struct {
	ID, Name      string
	Health, Alarm string
	Why           string
	Until         *moment
	RoundTrip     string
	Trips         string // median and slowest
	Clock         string
	ClockError    string
	ClockAlarm    string
}

type waiterRow struct {
	ID, Owner, Wish string
	Place           int
	Since           *moment
	Naming, Nodes   int
}

type answerRow struct {
	ID, Node, Err, Owner, Token, Fence string
	More                               int
	Until                              *moment
	Never                              bool
	Waiting                            int
}

type completedRow struct {
	ID, Occurrence string
	Until          *moment
	Naming, Nodes  int
}

// lockRowOf returns the row of a lock in the list.
func lockRowOf(l *lock, w watch) lockRow {
	r := lockRow{
		ID: l.id, Name: l.name, State: string(l.state), Shared: l.shared(),
		Waiting: l.waiting, Naming: l.naming, Nodes: l.nodes, More: max(0, len(l.holders)-maxListed),
	}
	for i := range l.holders[:min(len(l.holders), maxListed)] {
		h := holderRowOf(&l.holders[i], l.nodes, w)
		if h.Role = ""; l.holders[i].slots > 0 { // how many there are, the badge says
			h.Role = fmt.Sprintf("slot %d", l.holders[i].slot)
		}
		r.Holders = append(r.Holders, h)
	}
	marks := []string{r.State}
	for i := range l.holders {
		marks = append(marks, l.holders[i].owner, tokenText(l.holders[i].token))
	}
	r.Mark = idOf("m", marks...)
	return r
}

func holderRowOf(h *holder, nodes int, w watch) holderRow {
	r := holderRow{
		ID:    idOf("h", h.owner, tokenText(h.token), role(h)),
		Owner: h.owner, Kind: kindText(h.kind), Role: strings.Trim(role(h), " ()"), Token: tokenText(h.token),
		Since: w.at(h.since), Never: h.never, Naming: h.nodes, Nodes: nodes,
	}
	if !h.never {
		r.Until = w.at(h.until)
	}
	return r
}

// kindText says which client has a lock, if it is not one of ours.
func kindText(k redlatch.HolderKind) string {
	switch k {
	case redlatch.KindPlain:
		return "another client"
	case redlatch.KindForeign:
		return "a key of type"
	case redlatch.KindReserved:
		return "kept for the next waiter"
	}
	return ""
}

func tokenText(t redlatch.Token) string {
	if t == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(t), 10)
}

// nodeRowOf returns the row of a node.
func nodeRowOf(i int, n *nodeHealth, w watch) nodeRow {
	r := nodeRow{ID: "n" + strconv.Itoa(i), Name: n.name, Health: string(n.health), Alarm: alarm(n.health), Why: n.why, Until: w.at(n.until)}
	if n.known {
		r.RoundTrip = millis(n.roundTrip)
		r.Trips = fmt.Sprintf("median %s, slowest %s of the last %d", millis(n.median), millis(n.slowest), recentTrips)
		r.Clock, r.ClockError = ahead(n.clock), millis(n.clockError)
		if n.clockAlarm > node.Fine {
			r.ClockAlarm = n.clockAlarm.String()
		}
	}
	return r
}

// ahead is how far a clock is ahead, with a sign unless it is none.
func ahead(d time.Duration) string {
	text := millis(d.Abs())
	switch {
	case text == millis(0):
		return text
	case d < 0:
		return "−" + text
	}
	return "+" + text
}

// alarm says how bad a health is.
func alarm(h health) string {
	switch h {
	case inService:
		return "fine"
	case quarantined, unmarked, underserved:
		return "warning"
	}
	return "danger"
}

// lockModel is everything about one lock.
type lockModel struct {
	Name      string
	State     string
	Saying    string // what there is to say about it
	Err       string
	Fence     string
	Waiting   int
	More      int // waiters that are not shown
	Holders   []holderRow
	Hidden    int // holders that are not shown
	Waiters   []waiterRow
	Answers   []answerRow
	Completed []completedRow
	Since     *moment // since when occurrences are remembered
	Command   string
}

// maxHolders is how many holders of one lock are shown.
const maxHolders = 100

// lockModelOf returns everything about one lock. flags are those of the command
// that breaks it.
func lockModelOf(name string, d *detail, flags []string, w watch) *lockModel {
	m := &lockModel{Name: name}
	if d.err != nil {
		m.Err = errorText(d.err)
	}
	s := d.state
	if s == nil {
		return m
	}
	m.State, m.Waiting, m.More = string(s.State()), s.Waiting, s.Waiting-len(s.Waiters)
	m.Saying = saying(s)
	for i, h := range s.Holders {
		if i == maxHolders {
			m.Hidden = len(s.Holders) - i
			break
		}
		k := newHolder(h, d.at)
		m.Holders = append(m.Holders, holderRowOf(&k, len(s.Nodes), w))
	}
	if s.Fence != 0 {
		m.Fence = tokenText(s.Fence)
	}
	for i, q := range s.Waiters {
		since := strconv.FormatInt(q.Since.UnixMicro(), 10)
		m.Waiters = append(m.Waiters, waiterRow{idOf("w", q.Owner, since), q.Owner, wish(q), i + 1, w.at(q.Since), q.Nodes, len(s.Nodes)})
	}
	for i := range s.Nodes {
		m.Answers = append(m.Answers, answerRowOf(i, &s.Nodes[i], d.at, w))
	}
	for _, k := range s.Completed {
		m.Completed = append(m.Completed, completedRow{idOf("k", k.Occurrence), k.Occurrence, w.at(k.Until), k.Nodes, len(s.Nodes)})
	}
	m.Since = w.at(s.CompletedSince)
	m.Command = breakCommand(s, flags)
	return m
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

// wish says what a waiter waits for.
func wish(q admin.WaiterState) string {
	switch {
	case q.Slots > 0:
		return "one of " + count(q.Slots, "slot")
	case q.Shared:
		return "as a reader"
	}
	return "the whole lock"
}

// answerRowOf returns what one node says about a lock.
func answerRowOf(i int, n *admin.NodeListing, at time.Time, w watch) answerRow {
	r := answerRow{ID: "a" + strconv.Itoa(i), Node: n.Node}
	if n.Err != nil {
		r.Err = errorText(n.Err)
		return r
	}
	r.Owner, r.Token, r.Fence, r.Waiting = n.Owner, tokenText(n.Token), tokenText(n.Reply.Fence), n.Waiting
	r.More = max(0, len(n.Holders)-1)
	switch {
	case n.Owner == "":
	case n.Reply.Left == node.NoExpiry:
		r.Never = true
	default:
		r.Until = w.at(at.Add(n.Reply.Left).Round(time.Second))
	}
	return r
}

// breakCommand returns the command that breaks a lock; empty if nobody holds
// it. Its name has the client's prefix: the command has none.
func breakCommand(s *admin.LockState, flags []string) string {
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
	return strings.Join(words, " ")
}
