package redlatchcron

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/redlatch/redlatch"
)

const (
	// minWait is the shortest default of how long a replica waits for another
	// one: longer than a lock outlives a holder that was killed, with the
	// default MaxTTL of 30 s.
	minWait = time.Minute
	// maxWait is the longest one. After it something is wrong, and the log
	// should show it.
	maxWait = 24 * time.Hour
)

// job runs once for each time at which it is due.
type job struct {
	jobs  *Jobs
	name  string
	run   Func
	known chan struct{} // closed when the schedule is known

	schedule cron.Schedule
	location *time.Location
}

// job returns a job whose schedule is not known yet: it waits for setSchedule.
func (j *Jobs) job(name string, run Func) *job {
	return &job{jobs: j, name: name, run: run, known: make(chan struct{})}
}

// setSchedule sets the schedule, and the time zone of the scheduler. It is
// called once.
func (j *job) setSchedule(s cron.Schedule, location *time.Location) *job {
	j.schedule, j.location = s, location
	close(j.known)
	return j
}

// Run runs the job for the time at which it is due now, unless another replica
// does or did.
func (j *job) Run() {
	ctx, now := j.jobs.opts.Context, time.Now()
	<-j.known
	now = now.In(j.location)
	due := dueAt(j.schedule, now)
	opts := j.jobs.opts.Lock
	opts.Wait = cmp.Or(opts.Wait, min(max(j.schedule.Next(now).Sub(now), minWait), maxWait))
	ran, err := j.jobs.locks.Once(ctx, j.name, due.UTC().Format(time.RFC3339Nano), &opts, func(ctx context.Context, lease *redlatch.Lease) error {
		return j.run(context.WithValue(ctx, dueKey{}, due), lease)
	})
	j.report(ctx, due, ran, err)
}

// report logs what became of the job.
func (j *job) report(ctx context.Context, due time.Time, ran bool, err error) {
	log := j.jobs.opts.Logger.With("job", j.name, "due", due)
	switch {
	case err == nil && ran:
		log.Debug("redlatch: job ran")
	case err == nil:
		log.Debug("redlatch: job ran on another replica")
	case ran:
		log.Error("redlatch: job failed, or lost its lock, and another replica may run it", "err", err)
	case errors.Is(err, redlatch.ErrHeld):
		log.Warn("redlatch: job is skipped: another replica holds its lock", "err", err)
	case ctx.Err() != nil:
		log.Info("redlatch: job is not run: the scheduler stops", "err", err)
	default:
		log.Error("redlatch: job skipped: cannot acquire its lock", "err", err)
	}
	if onError := j.jobs.opts.OnError; err != nil && onError != nil {
		onError(j.name, due, err)
	}
}
