// Package jobtest checks what several replicas of a scheduler did. Replicas are
// processes; each notes in a file that they share when its scheduler was due to
// run a job, and when the job began and ended. The order of the lines is the
// order of what happened.
package jobtest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/poll"
)

// The kinds of event.
const (
	Tick   = "tick"   // the replica's scheduler was due to run the job
	Early  = "early"  // the job begins before it is due
	Start  = "start"  // the job began
	Held   = "held"   // the job goes on until File.Go
	End    = "end"    // the job ended
	Killed = "killed" // the replica is dead
)

// Step is the time between two runs of a replica's job. It is due at whole
// multiples of it.
const Step = 2 * time.Second

// Event is a line of the file.
type Event struct {
	Kind    string
	Replica string
	Due     time.Time // when the job was due, by the scheduler; zero for Killed
}

// File is the file that replicas write to.
type File string

// Note appends an event. A line is written at once, so those of several
// processes do not mix.
func (f File) Note(kind, replica string, due time.Time) error {
	file, err := os.OpenFile(string(f), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = fmt.Fprintln(file, kind, replica, due.UTC().Format(time.RFC3339Nano))
	return err
}

// Run is the job of a replica: it notes its start, works for a time and as long
// as Hold says so, and notes its end.
func (f File) Run(replica string, due time.Time, work time.Duration) error {
	if err := f.Note(Start, replica, due); err != nil {
		return err
	}
	time.Sleep(work)
	if f.held() {
		if err := f.Note(Held, replica, due); err != nil {
			return err
		}
	}
	for f.held() {
		time.Sleep(10 * time.Millisecond)
	}
	return f.Note(End, replica, due)
}

func (f File) held() bool {
	_, err := os.Stat(string(f) + ".hold")
	return err == nil
}

// Hold has jobs work on until Go, so that a replica can be killed in the middle
// of one.
func (f File) Hold(t testing.TB) {
	t.Helper()
	if err := os.WriteFile(string(f)+".hold", nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

// Go ends Hold.
func (f File) Go(t testing.TB) {
	t.Helper()
	if err := os.Remove(string(f) + ".hold"); err != nil {
		t.Fatal(err)
	}
}

// Events returns what the replicas noted.
func (f File) Events(t testing.TB) []Event {
	t.Helper()
	text, err := os.ReadFile(string(f))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var events []Event
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if !strings.HasSuffix(line, "\n") || len(fields) != 3 {
			t.Fatalf("the file has the line %q", line)
		}
		due, err := time.Parse(time.RFC3339Nano, fields[2])
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, Event{fields[0], fields[1], due})
	}
	return events
}

// Await waits until the events fulfil a condition, and returns them.
func (f File) Await(t testing.TB, what string, ok func([]Event) bool) []Event {
	t.Helper()
	var events []Event
	if !poll.Holds(poll.Patience, func() bool { events = f.Events(t); return ok(events) }) {
		t.Fatalf("not within %v: %s; the replicas did:\n%s", poll.Patience, what, Text(events))
	}
	return events
}

// Running returns the runs that have begun and neither ended nor died with
// their replica.
func Running(events []Event) []Event {
	var open []Event
	for _, e := range events {
		switch e.Kind {
		case Start:
			open = append(open, e)
		case End:
			open = slices.DeleteFunc(open, func(o Event) bool { return o.Replica == e.Replica && o.Due.Equal(e.Due) })
		case Killed:
			open = slices.DeleteFunc(open, func(o Event) bool { return o.Replica == e.Replica })
		}
	}
	return open
}

// Count returns how many events of a kind a replica noted, or all replicas if
// the name is empty.
func Count(events []Event, kind, replica string) int {
	n := 0
	for _, e := range events {
		if e.Kind == kind && (replica == "" || e.Replica == replica) {
			n++
		}
	}
	return n
}

// Violations returns where two runs overlap, where a job ran again that had
// ended for the same time, and where it ran for a time at which it was not due
// or not due yet.
// A run that died with its replica has not ended.
func Violations(events []Event) []string {
	var found []string
	ended := map[time.Time]string{}
	for i, e := range events {
		switch e.Kind {
		case Start:
			if !e.Due.Equal(e.Due.Truncate(Step)) {
				found = append(found, fmt.Sprintf("off: %s runs %s, when nothing was due", e.Replica, clock(e.Due)))
			}
			for _, o := range Running(events[:i]) {
				found = append(found, fmt.Sprintf("overlap: %s runs %s while %s runs %s", e.Replica, clock(e.Due), o.Replica, clock(o.Due)))
			}
			if by, ok := ended[e.Due]; ok {
				found = append(found, fmt.Sprintf("twice: %s runs %s, which %s has run", e.Replica, clock(e.Due), by))
			}
		case Early:
			found = append(found, fmt.Sprintf("early: %s runs %s before it is due", e.Replica, clock(e.Due)))
		case End:
			ended[e.Due] = e.Replica
		}
	}
	return found
}

// Missing returns the times at which a job was due on a replica and which no
// replica ran to the end.
func Missing(events []Event, replica string) []time.Time {
	ended := map[time.Time]bool{}
	for _, e := range events {
		if e.Kind == End {
			ended[e.Due] = true
		}
	}
	var missing []time.Time
	for _, e := range events {
		if e.Kind == Tick && e.Replica == replica && !ended[e.Due] {
			missing = append(missing, e.Due)
		}
	}
	return missing
}

// Text returns events for a test's log.
func Text(events []Event) string {
	var s strings.Builder
	for _, e := range events {
		fmt.Fprintf(&s, "%-6s %s %s\n", e.Kind, e.Replica, clock(e.Due))
	}
	return s.String()
}

func clock(t time.Time) string { return t.Format("15:04:05.999") }
