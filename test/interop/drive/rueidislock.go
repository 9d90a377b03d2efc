package drive

import (
	"context"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// rueidislockLock has a locker for each time to live that is asked for: a
// locker has one time to live for all its locks.
type rueidislockLock struct {
	address string
	lockers map[time.Duration]rueidislock.Locker
	held    context.Context
	release context.CancelFunc
}

// Rueidislock returns rueidislock, on the first address. It keeps a lock as
// several keys of one server; a majority of one makes it a single key.
func Rueidislock(addresses []string) (string, Lock) {
	return Module("github.com/redis/rueidis"),
		&rueidislockLock{address: addresses[0], lockers: map[time.Duration]rueidislock.Locker{}}
}

func (l *rueidislockLock) Acquire(ctx context.Context, name string, ttl time.Duration) (bool, error) {
	locker := l.lockers[ttl]
	if locker == nil {
		var err error
		locker, err = rueidislock.NewLocker(rueidislock.LockerOption{
			ClientOption:   rueidis.ClientOption{InitAddress: []string{l.address}, ForceSingleClient: true},
			KeyMajority:    1,
			KeyValidity:    ttl,
			NoLoopTracking: true,
		})
		if err != nil {
			return false, err
		}
		l.lockers[ttl] = locker
	}
	// The lock ends with the context of the request, so that is not ctx.
	held, release, err := locker.TryWithContext(context.WithoutCancel(ctx), name)
	if err == nil {
		l.held, l.release = held, release
	}
	return done(err, rueidislock.ErrNotLocked)
}

func (l *rueidislockLock) Extend(context.Context, time.Duration) (bool, error) {
	return false, ErrCannot
}

func (l *rueidislockLock) Release(context.Context) (bool, error) {
	lost := l.held.Err() != nil
	l.release()
	return !lost, nil
}
