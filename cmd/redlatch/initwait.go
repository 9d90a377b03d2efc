package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/screen"
)

// quarantineLine is how often a line is written while nodes are in quarantine
// and there is no terminal for a bar.
const quarantineLine = 10 * time.Second

// quarantineView shows how long init still has to wait: as a bar on a terminal,
// elsewhere as a line now and then.
type quarantineView struct {
	say    *reporter
	screen *screen.Screen

	mu    sync.Mutex // guards what follows
	nodes int        // how many are waited for
	until time.Time  // when the last of them is trusted
	whole time.Duration
	said  time.Time

	end  chan struct{}
	over chan struct{}
}

// showQuarantine begins to show the waiting. It returns nil if nothing is to be
// shown.
func (r *reporter) showQuarantine() *quarantineView {
	if r.quiet {
		return nil
	}
	v := &quarantineView{say: r, end: make(chan struct{}), over: make(chan struct{})}
	if file, ok := r.w.(*os.File); ok && r.format != "json" {
		if v.screen = screen.Open(file); v.screen != nil {
			v.screen.Faint = true
		}
	}
	go v.run()
	return v
}

// progress gets the states of the nodes.
func (v *quarantineView) progress(states []admin.NodeState) {
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	v.nodes = 0
	var left time.Duration
	for _, s := range states {
		if s.Err != nil || !s.Trusted {
			v.nodes++
		}
		left = max(left, s.Left)
	}
	v.until, v.whole = now.Add(left), max(v.whole, left)
	if v.screen == nil && (v.said.IsZero() || now.Sub(v.said) >= quarantineLine && left >= time.Second) {
		v.said = now
		text := fmt.Sprintf("waiting for %s (%v left)", count(v.nodes, "node"), left.Round(time.Second))
		if v.say.format == "json" {
			v.say.json(event{Event: "waiting", Message: text, Left: ms(left)})
			return
		}
		v.say.line(text, "")
	}
}

// run keeps the bar up to date.
func (v *quarantineView) run() {
	defer close(v.over)
	ticker := time.NewTicker(waitShown)
	defer ticker.Stop()
	for {
		select {
		case <-v.end:
			v.screen.Clear()
			return
		case <-ticker.C:
		}
		if line := v.bar(); line != "" {
			v.screen.Draw(line)
		}
	}
}

// bar is the line on a terminal; empty before anything is known.
func (v *quarantineView) bar() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.whole == 0 {
		return ""
	}
	left := max(time.Until(v.until), 0)
	return fmt.Sprintf("redlatch: waiting for %s [%s] %v left", count(v.nodes, "node"),
		screen.Bar(20, 1-left.Seconds()/v.whole.Seconds()), left.Round(time.Second))
}

// stop removes the bar. Nothing is written after that.
func (v *quarantineView) stop() {
	if v == nil {
		return
	}
	close(v.end)
	<-v.over
}

// freshQuestion is what everyone must know who trusts nodes at once.
const freshQuestion = `Trusting these servers at once is safe only if they are brand-new. If they lost
their data, a lock from before may still be held, and there will be two holders:
answer no, and run init without --assume-fresh, which waits until that lock has
expired.
Are all of them brand-new? [y/N] `

// interruptedInit is the outcome of an init that a signal ended.
func interruptedInit(ctx context.Context, states []admin.NodeState, err error) error {
	end := outcomeOf(context.Cause(ctx))
	end.err = err
	if !slices.ContainsFunc(states, func(s admin.NodeState) bool { return s.Err != nil }) {
		end.err = errors.New("stopped waiting: the nodes are marked, and will be trusted when quarantine ends")
	}
	return end
}
