package world

import (
	"fmt"
	"time"
)

// Story is a world, and what happens in it, step by step. The page shows it, and
// TestPageTellsEveryStory runs it.
type Story struct {
	Name, Title string
	About       string `json:"-"`
	Steps       []Step `json:"-"`
}

// Step is one step of a story.
type Step struct {
	// New starts the step in a new world.
	New *Options
	// Say is what is about to happen, for a reader.
	Say string
	Do  func(*World) // nil for nothing
	// Until is when the step is over.
	Until func(*World) bool
	// Then is what is true after it, and Check whether it is, as far as Until does
	// not say so; nil for nothing more.
	Then  string
	Check func(*World) bool
	// Bad says that what is true then is a loss: two holders, or lost work.
	Bad bool
}

// limitOfStep is how long a step may take. A quarantine and a TTL are below it.
const limitOfStep = 30 * time.Second

// next begins the next step of the story.
func (p *Page) next() {
	if p.story == nil || p.running || p.at == len(p.story.Steps) {
		return
	}
	s := &p.story.Steps[p.at]
	if s.New != nil && p.at > 0 {
		p.world, p.fresh = New(*s.New), true
	}
	p.at++
	p.running, p.ends = true, p.world.now+limitOfStep
	if s.Do != nil {
		s.Do(p.world)
	}
	p.world.check()
	p.over()
}

// over looks whether the step is over, if there is one. No promise may be broken in
// it, and with the guard on there are no two holders.
func (p *Page) over() bool {
	if !p.running {
		return p.story != nil
	}
	s, w := &p.story.Steps[p.at-1], p.world
	is := s.Until(w)
	if p.running = !is && w.now < p.ends; p.running {
		return false
	}
	if !is || s.Check != nil && !s.Check(w) || len(w.broken) > 0 || w.twice > 0 && !w.guard.Off {
		p.wrong = fmt.Sprintf("step %d, %q: not so, with two holders %d times, broken: %q", p.at, s.Then, w.twice, w.broken)
	}
	return true
}
