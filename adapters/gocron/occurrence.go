package redlatchgocron

import (
	"fmt"
	"slices"
	"time"

	"github.com/go-co-op/gocron/v2"
)

const (
	// early is how much before its time a job may be started, but no more than
	// the earlyPart-th part of the time to the next run. The scheduler's timer
	// does not follow a clock that is set meanwhile.
	early     = 10 * time.Second
	earlyPart = 8
	// runs is how many times of a job are considered. The scheduler has more
	// than one that has come only if runs wait for each other.
	runs = 64
)

// occurrence names the time for which a job runs that is started now.
func (l *Locker) occurrence(key string) (string, error) {
	now := time.Now()
	if l.opts.Occurrence != nil {
		return l.opts.Occurrence(key, now), nil
	}
	l.mu.Lock()
	s, warned := l.scheduler, l.warned
	l.warned = l.warned || s == nil
	l.mu.Unlock()
	due := now.Truncate(time.Second)
	if s != nil {
		var err error
		if due, err = scheduled(s, key, now); err != nil {
			return "", err
		}
	} else if !warned {
		l.opts.Logger.Warn("redlatch: the locker knows no schedule: use its NewScheduler or Bind", "job", key)
	}
	return due.UTC().Format(time.RFC3339Nano), nil
}

// scheduled returns the time for which the scheduler started the job of a name
// now. A job that is not due was started by RunNow: its time is the present
// second.
func scheduled(s gocron.Scheduler, name string, now time.Time) (time.Time, error) {
	var latest time.Time
	found := false
	for _, j := range s.Jobs() {
		if j.Name() != name {
			continue
		}
		found = true
		times, err := j.NextRuns(runs)
		if err != nil {
			return time.Time{}, fmt.Errorf("redlatchgocron: the schedule of job %q: %w", name, err)
		}
		if due := round(lastDue(times, now), j.Schedule()); due.After(latest) {
			latest = due
		}
	}
	switch {
	case !found:
		return time.Time{}, fmt.Errorf("redlatchgocron: job %q: %w", name, gocron.ErrJobNotFound)
	case latest.IsZero():
		return now.Truncate(time.Second), nil
	}
	return latest, nil
}

// lastDue returns the last of a job's times that has come; the zero time if none
// has. The scheduler keeps the time of a run until the run has begun.
func lastDue(times []time.Time, now time.Time) time.Time {
	times = slices.SortedFunc(slices.Values(times), time.Time.Compare) // a copy: they are the scheduler's own
	var due time.Time
	for i, t := range times {
		ahead := early
		switch {
		case i+1 < len(times):
			ahead = min(ahead, times[i+1].Sub(t)/earlyPart)
		case i > 0:
			ahead = min(ahead, t.Sub(times[i-1])/earlyPart)
		}
		if t.Sub(now) <= ahead {
			due = t
		}
	}
	return due
}

// round returns the beginning of the period for a job that counts from the start
// of its process, because that is at another time on each replica. Periods are
// counted from the year 1. Other jobs have the same times everywhere.
func round(due time.Time, schedule gocron.JobSchedule) time.Time {
	period := time.Duration(0)
	switch s := schedule.(type) {
	case gocron.DurationJobSchedule:
		period = s.Duration
	case gocron.DurationRandomJobSchedule:
		period = s.Min
	}
	if due.IsZero() || period == 0 {
		return due
	}
	return due.Truncate(period)
}
