package redlatchcron

import (
	"time"

	"github.com/robfig/cron/v3"
)

// longest is how far dueAt looks back. A schedule with a longer gap than a leap
// day's is a mistake.
const longest = 10 * 365 * 24 * time.Hour

// dueAt returns the time for which a job runs that is started now: the last one at
// which it was due. All replicas get the same one, however late they are, as
// long as the job was not due again meanwhile.
//
// A schedule that counts from the start of the process, as @every does, is due
// at other times on each replica. For it, dueAt returns the beginning of the
// present period, where periods are counted from the year 1.
func dueAt(s cron.Schedule, now time.Time) time.Time {
	if d := delay(s, now); d > 0 {
		return now.Truncate(d)
	}
	for back := time.Second; back <= longest; back *= 2 {
		if from := now.Add(-back); within(s.Next(from), now) {
			return last(s, from, now)
		}
	}
	return now.Truncate(time.Second) // never due: it was started by hand
}

// delay returns the period of a schedule that only adds a delay to a time, and
// 0 for one that has fixed times. A delay moves with the time it is added to. A
// fixed time does not, unless it is due every second; then both are the same.
func delay(s cron.Schedule, now time.Time) time.Duration {
	at := now.Truncate(time.Second)
	next := s.Next(at)
	if next.IsZero() || !s.Next(at.Add(time.Second)).Equal(next.Add(time.Second)) {
		return 0
	}
	return next.Sub(at)
}

// last returns the last time up to now at which the job is due. There is one
// after from.
func last(s cron.Schedule, from, now time.Time) time.Time {
	to := now
	for to.Sub(from) > time.Second {
		middle := from.Add(to.Sub(from) / 2)
		if within(s.Next(middle), now) {
			from = middle
		} else {
			to = middle
		}
	}
	due := s.Next(from)
	for next := s.Next(due); within(next, now); next = s.Next(due) {
		due = next
	}
	return due
}

// within reports whether a time exists and has come.
func within(t, now time.Time) bool { return !t.IsZero() && !t.After(now) }
