package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/holders"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/terminal"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/lockerrors"
	"github.com/redlatch/redlatch/observe"
)

const (
	// waitShown is after how long a wait is shown on a terminal.
	waitShown = 200 * time.Millisecond
	// waitRefresh is how often the line is updated. Each time the nodes are
	// asked, which changes nothing there.
	waitRefresh = 500 * time.Millisecond
	// waitLine is after how long a wait is reported where there is no terminal. The
	// next one follows when the wait is waitRarer times as long, and after waitMost at
	// the latest. It is longer than OutagePatience, after which an outage is reported in
	// any case.
	waitLine  = 2500 * time.Millisecond
	waitRarer = 4
	waitMost  = 10 * time.Minute
)

// waiting shows during a wait who holds the lock, since when, and our place in
// the queue: on a terminal in one line that is updated, elsewhere in a line now
// and then.
type waiting struct {
	name   string
	nodes  []redlatch.Node
	places *places
	share  shareFlags
	say    *reporter
	screen *terminal.Screen // nil if there is no terminal
	since  time.Time
	cancel context.CancelFunc
	over   chan struct{}
}

// showWaiting begins to show a wait. It returns nil, and shows nothing, with
// --quiet.
func (r *reporter) showWaiting(name string, nodes []redlatch.Node, places *places, share shareFlags) *waiting {
	if r.quiet {
		return nil
	}
	w := &waiting{name: name, nodes: nodes, places: places, share: share, say: r, screen: r.screen(), since: time.Now(), over: make(chan struct{})}
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

// run keeps a line on a terminal up to date. Elsewhere it writes one now and
// then, ever more rarely.
func (w *waiting) run(ctx context.Context) {
	defer close(w.over)
	defer w.screen.Clear()
	pause := waitLine
	if w.screen != nil {
		pause = waitShown
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		switch seen := w.look(ctx); {
		case ctx.Err() != nil:
		case w.screen != nil:
			w.screen.Draw(seen.line())
			pause = waitRefresh
		default:
			w.say.waiting(seen)
			pause = nextLine(time.Since(w.since))
		}
	}
}

// screen returns the terminal on stderr, for lines that are updated; nil if there
// is none, or stderr is for programs.
func (r *reporter) screen() *terminal.Screen {
	file, ok := r.w.(*os.File)
	if !ok || r.json {
		return nil
	}
	s := terminal.Open(file)
	if s != nil {
		s.Faint = true
	}
	return s
}

// nextLine is how long after a line the next one follows.
func nextLine(waited time.Duration) time.Duration {
	return min((waitRarer-1)*waited, waitMost)
}

// waitView is what is known of a wait at one moment.
type waitView struct {
	name    string            // of the lock
	share   shareFlags        // what we wait for
	holders []redlatch.Holder // whom most nodes name; empty for nobody
	place   int               // in the queue; 0 if it is not known
	waited  time.Duration
	nodes   int
	silent  int    // of those, the ones that do not answer
	outage  string // what is wrong with the nodes, if we wait for them

	// How many nodes must leave quarantine, and how long that takes; 0 if we
	// wait for something else too.
	quarantined int
	left        time.Duration
	fresh       bool // they are new, or have lost their data
}

// look asks the nodes whom they name as the holder.
func (w *waiting) look(ctx context.Context) waitView {
	ctx, cancel := context.WithTimeout(ctx, waitRefresh)
	defer cancel()
	v := w.places.last()
	v.name, v.share, v.waited, v.nodes = cmp.Or(v.name, w.name), w.share, time.Since(w.since), len(w.nodes)
	if v.outage != "" {
		return v
	}
	answers := inspect(ctx, w.nodes, v.name)
	for _, a := range answers {
		if a.Err != nil {
			v.silent++
		}
	}
	all := holders.Of[redlatch.Holder](answers...)
	v.holders = all[:min(len(all), 1)]
	return v
}

// inspect asks every node about a lock.
func inspect(ctx context.Context, nodes []redlatch.Node, name string) []observe.Result {
	answers := make([]observe.Result, len(nodes))
	var asked sync.WaitGroup
	for i, n := range nodes {
		asked.Go(func() {
			answers[i].Reply, answers[i].Err = n.Do(ctx, node.Request{Op: node.OpInspect, Name: name})
		})
	}
	asked.Wait()
	return answers
}

// line says what is waited for, in a form that is fit for a terminal: anybody
// may have written the holder's value, and a terminal obeys what it is shown.
func (v waitView) line() string {
	place := ""
	if v.left > 0 {
		why := ""
		if v.fresh {
			why = ": " + lockerrors.NewServers + "; " + lockerrors.AvoidWait
		}
		return harmless(fmt.Sprintf("redlatch: waiting for %s to leave quarantine (%v left)%s", count(v.quarantined, "node"), roundUp(v.left), why))
	}
	if v.outage != "" {
		return harmless(fmt.Sprintf("redlatch: waiting for nodes for %q (%v so far): %s", v.name, v.waited.Round(time.Second), v.outage))
	}
	if v.place > 0 {
		place = ", " + ordinal(v.place) + " in the queue"
	}
	why := ""
	switch {
	case 2*(v.nodes-v.silent) <= v.nodes:
		why = fmt.Sprintf(": %d of %d nodes do not answer", v.silent, v.nodes)
	case len(v.holders) > 0:
		why = ": "
		if who := v.share.before(v.holders[0]); who != "" {
			why += who + "; "
		}
		why += "held by " + v.holders[0].String()
	}
	return harmless(fmt.Sprintf("redlatch: waiting for %q%s (%v so far)%s", v.name, place, v.waited.Round(time.Second), why))
}

// ordinal is 1st, 2nd, 3rd, …
func ordinal(n int) string {
	end := "th"
	if n%100/10 != 1 {
		switch n % 10 {
		case 1:
			end = "st"
		case 2:
			end = "nd"
		case 3:
			end = "rd"
		}
	}
	return fmt.Sprint(n, end)
}

// places is an Observer that keeps our place in the queue, or what is wrong with
// the nodes if too few of them answer.
type places struct {
	mu   sync.Mutex
	seen waitView  // without what is asked for: it has the name once we wait
	at   time.Time // when it was seen

	answered bool        // a quorum has answered: neither addresses nor password are wrong
	outage   time.Time   // when the outage was noticed; zero if there is none
	missing  int32       // rounds in a row without a quorum
	told     bool        // that the outage lasts
	tell     func(error) // gets the error of an outage that lasts
	giveUp   func()      // ends the wait
	limited  bool        // it has a limit of its own
	patient  bool        // it goes on though no node ever answered
	hopeless error       // why the wait was ended
}

// endured judges a round of a wait: nodes that have answered before are waited for.
// The mutex is held. It returns what to call without it.
func (p *places) endured(err error, outage bool) func() {
	if !outage {
		p.answered, p.outage, p.missing, p.told = true, time.Time{}, 0, false
		return nil
	}
	if p.missing++; p.missing == 1 {
		p.outage = p.at
	}
	lasts := !p.limited && protocol.OutageLasts(p.at.Sub(p.outage), p.missing)
	switch {
	case !p.answered && (lasts && !p.patient || denied(err)):
		p.hopeless = err
		return p.giveUp
	case lasts && !p.told:
		p.told = true
		return func() { p.tell(err) }
	}
	return nil
}

func (p *places) LockStart(ctx context.Context, l observe.LockStart) context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = waitView{name: l.Name}
	return ctx
}

func (p *places) LockEnd(context.Context, observe.LockEnd) {}

func (p *places) Waiting(_ context.Context, w observe.Waiting) {
	p.mu.Lock()
	p.at = time.Now()
	why, outage := outageOf(w.Err)
	p.seen = waitView{name: w.Name, place: w.Place, outage: why}
	if quorum := (*redlatch.QuorumError)(nil); errors.As(w.Err, &quorum) {
		p.seen.left, p.seen.quarantined = quorum.QuarantineLeft, quorum.Quarantined
		p.seen.fresh = slices.ContainsFunc(quorum.Nodes, func(r observe.Result) bool {
			return r.Err == nil && r.Reply.Reason == node.ReasonNew && !r.Reply.NeedsMark
		})
	}
	then := p.endured(w.Err, outage)
	p.mu.Unlock()
	if then != nil {
		then()
	}
}

// last returns what was seen last.
func (p *places) last() waitView {
	p.mu.Lock()
	defer p.mu.Unlock()
	v := p.seen
	if v.left > 0 {
		v.left = max(v.left-time.Since(p.at), time.Millisecond)
	}
	return v
}

// outageOf says what is wrong with the nodes that we wait for; nothing, if we
// wait for a holder. outage is true if too few answer, or will after a quarantine.
func outageOf(err error) (text string, outage bool) {
	var nodes *redlatch.QuorumError
	switch {
	case errors.Is(err, redlatch.ErrChanging):
		return message(err), true
	case !errors.As(err, &nodes):
		return "", false
	}
	var why []string
	left := len(nodes.Nodes)
	for _, r := range nodes.Nodes {
		if r.Err != nil || r.Reply.Status == node.Quarantined || r.Reply.Status == node.Misconfigured {
			why = append(why, r.String())
		}
		if r.Err != nil || r.Reply.Status == node.Misconfigured || r.Reply.NeedsMark {
			left--
		}
	}
	return strings.Join(why, "; "), left < nodes.Need
}
