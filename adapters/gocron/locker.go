package redlatchgocron

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/optional"
)

// ErrDone is returned by Locker.Lock when another replica has run the job for
// the same time. It is no failure.
var ErrDone = errors.New("redlatchgocron: another replica has run the job")

// settle is how long a replica waits for the lock by default. It is not for the
// holder: replicas that ask several nodes at the same moment can each get some
// of them, and none a majority. Then they ask again.
const settle = time.Second

// Options are the settings of a Locker. The zero value works.
type Options struct {
	// Lock are the settings of each job's lock. Shared and Slots are refused.
	//
	// Lock.Wait is how long a replica waits for the one that runs the job. It
	// defaults to one second: a replica that loses skips the job. If it is
	// longer than the TTL and the job, a replica runs what another one had
	// begun when it died; the scheduler does not start the job again while it
	// waits.
	Lock redlatch.LockOptions

	// Occurrence names the time for which a job runs that is started now. All
	// replicas must find the same name, and each run must have its own. Defaults
	// to the time for which the scheduler scheduled it; see NewScheduler.
	Occurrence func(key string, now time.Time) string

	// Logger logs what a scheduler does not report: a job that is skipped
	// because its lock is not available, a lock that was lost while the job ran, a
	// run that could not be noted, and a locker without its scheduler. Defaults
	// to slog.Default.
	Logger *slog.Logger
}

// A Locker runs a job on one replica, once for each time at which it is
// scheduled. It is a gocron.Locker.
type Locker struct {
	locks *redlatch.Client
	opts  Options

	mu        sync.Mutex
	scheduler gocron.Scheduler
	warned    bool
	held      map[string]*redlatch.Lease
}

// NewLocker returns a locker. Its locks are the client's; all replicas must have
// clients of the same nodes.
func NewLocker(locks *redlatch.Client, opts *Options) (*Locker, error) {
	o := optional.Value(opts)
	if err := check(locks, o.Lock); err != nil {
		return nil, err
	}
	o.Logger = cmp.Or(o.Logger, slog.Default())
	o.Lock.Wait = cmp.Or(o.Lock.Wait, settle)
	return &Locker{locks: locks, opts: o, held: map[string]*redlatch.Lease{}}, nil
}

func check(locks *redlatch.Client, lock redlatch.LockOptions) error {
	if locks == nil {
		return &redlatch.ConfigError{Field: "locks", Value: "nil", Bound: "a client of redlatch.New"}
	}
	if lock.Shared || lock.Slots != 0 {
		return &redlatch.ConfigError{Field: "Lock.Shared", Value: fmt.Sprintf("%v with %d Slots", lock.Shared, lock.Slots),
			Bound: "left out, and Lock.Slots too: one replica runs a job"}
	}
	return nil
}

// NewScheduler returns a scheduler of gocron that uses the locker, and which the
// locker asks for which time a job runs. A locker has one scheduler.
func (l *Locker) NewScheduler(opts ...gocron.SchedulerOption) (gocron.Scheduler, error) {
	s, err := gocron.NewScheduler(append(opts[:len(opts):len(opts)], gocron.WithDistributedLocker(l))...)
	if err == nil {
		l.Bind(s)
	}
	return s, err
}

// Bind makes the locker ask a scheduler that was made elsewhere, before it is
// started. Without it the locker knows no schedule, and takes the second in
// which a job is started for the time for which it runs. That is wrong for a
// replica that is a second late, and for jobs that count from the start of their
// process.
func (l *Locker) Bind(s gocron.Scheduler) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.scheduler = s
}

// Lock returns the lock of a job for the time at which it is scheduled now. The
// lock is extended until Unlock. The error is ErrDone if another replica has run
// the job for that time, and redlatch.ErrHeld if another one runs it.
func (l *Locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	occurrence, err := l.occurrence(key)
	if err != nil {
		return nil, err
	}
	k := &lock{locker: l, key: key, unlock: make(chan struct{}), ended: make(chan struct{})}
	acquired := make(chan struct{})
	go func() {
		defer close(k.ended)
		var ran bool
		ran, k.err = l.locks.Once(ctx, key, occurrence, &l.opts.Lock, func(_ context.Context, lease *redlatch.Lease) error {
			l.hold(key, lease)
			defer l.hold(key, nil)
			close(acquired)
			<-k.unlock
			return nil
		})
		if !ran && k.err == nil {
			k.err = ErrDone
		}
	}()
	select {
	case <-acquired:
		return k, nil
	case <-k.ended:
		l.report(ctx, key, occurrence, k.err)
		return nil, fmt.Errorf("redlatchgocron: job %q of %s is not run here: %w", key, occurrence, k.err)
	}
}

// report logs why a job is not run here. The scheduler does not.
func (l *Locker) report(ctx context.Context, key, occurrence string, err error) {
	log := l.opts.Logger.With("job", key, "occurrence", occurrence)
	switch {
	case errors.Is(err, ErrDone), errors.Is(err, redlatch.ErrHeld):
		log.Debug("redlatch: job runs on another replica", "err", err)
	case ctx.Err() != nil:
		log.Info("redlatch: job is not run: the scheduler stops", "err", err)
	default:
		log.Error("redlatch: job skipped: cannot acquire its lock", "err", err)
	}
}

// Lease returns the lease of a job that runs here: for its token, and its
// context, which ends when the lock is lost. It returns nil if the job does not
// run here.
func (l *Locker) Lease(key string) *redlatch.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[key]
}

// hold sets or deletes the lease of a job that runs here.
func (l *Locker) hold(key string, lease *redlatch.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lease == nil {
		delete(l.held, key)
	} else {
		l.held[key] = lease
	}
}

// lock is the lock of a run.
type lock struct {
	locker *Locker
	key    string
	once   sync.Once
	unlock chan struct{} // closed when the job has ended
	ended  chan struct{} // closed when the lock is released
	err    error         // why the lock was not had, or was lost; after ended
}

// Unlock notes that the job ran, and releases its lock, whatever became of ctx:
// that of a scheduler that shuts down has ended.
func (k *lock) Unlock(context.Context) error {
	k.once.Do(func() {
		close(k.unlock)
		<-k.ended
		if k.err != nil { // the scheduler drops it
			k.locker.opts.Logger.Error("redlatch: job ran, and another replica may have run it too, or may yet", "job", k.key, "err", k.err)
		}
	})
	return k.err
}
