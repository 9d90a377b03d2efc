package world

import (
	"errors"
	"fmt"
	"time"
)

// Story is a world, and what happens in it, step by step. The page shows it, and
// TestPageTellsEveryStory runs it.
type Story struct {
	Name  string
	Title string
	About string
	Steps []Step
}

// Step is one step of a story.
type Step struct {
	// New has the step begin in a new world.
	New *Options
	// Say is what is about to happen, for a reader.
	Say string
	Do  func(*World) // nil for nothing
	// Until is when the step is over.
	Until func(*World) bool
	// Then is what is true after it. Check reports an error if it is not.
	Then  string
	Check func(*World) error
}

// limitOfStep is how long a step may take. A quarantine and a TTL are below it.
const limitOfStep = 30 * time.Second

// Telling is a story in progress.
type Telling struct {
	Story *Story
	World *World
	// At is the number of steps that have begun, and Running says that the last
	// of them is not over.
	At      int
	Running bool
	// Err is what was not as the story says.
	Err error

	ends time.Duration
}

// Tell begins a story.
func Tell(s *Story) *Telling {
	return &Telling{Story: s, World: New(*s.Steps[0].New)}
}

// Next begins the next step.
func (t *Telling) Next() {
	if t.Running || t.At == len(t.Story.Steps) {
		return
	}
	s := &t.Story.Steps[t.At]
	if s.New != nil && t.At > 0 {
		t.World = New(*s.New)
	}
	t.At++
	t.Running, t.ends = true, t.World.now+limitOfStep
	if s.Do != nil {
		s.Do(t.World)
	}
	t.World.check()
	t.over()
}

// over looks whether the step is over.
func (t *Telling) over() bool {
	if !t.Running {
		return true
	}
	s := &t.Story.Steps[t.At-1]
	switch {
	case s.Until(t.World):
		t.Running = false
		if err := s.Check(t.World); err != nil {
			t.Err = errors.Join(t.Err, fmt.Errorf("step %d, %q: %w", t.At, s.Then, err))
		}
	case t.World.now >= t.ends:
		t.Running = false
		t.Err = errors.Join(t.Err, fmt.Errorf("step %d, %q: not so within %v", t.At, s.Then, limitOfStep))
	}
	return !t.Running
}

// Run has time pass, up to the end of the step.
func (t *Telling) Run(d time.Duration) {
	t.World.RunUntil(d, t.over)
}

// Finish has the step be over at once.
func (t *Telling) Finish() { t.Run(limitOfStep) }
