package drive

import (
	"context"
	"errors"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	redsyncgoredis "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredis "github.com/redis/go-redis/v9"
)

type redsyncLock struct {
	sync    *redsync.Redsync
	options []redsync.Option
	mutex   *redsync.Mutex
}

// Redsync returns redsync over go-redis.
func Redsync(addresses []string, options ...redsync.Option) (string, Lock) {
	var pools []redis.Pool
	for _, a := range addresses {
		pools = append(pools, redsyncgoredis.NewPool(goredis.NewClient(&goredis.Options{Addr: a, ContextTimeoutEnabled: true})))
	}
	return Module("github.com/go-redsync/redsync/v4"), &redsyncLock{sync: redsync.New(pools...), options: options}
}

// RedsyncSetNX returns redsync with the option that lets an extension create a
// missing key.
func RedsyncSetNX(addresses []string) (string, Lock) {
	return Redsync(addresses, redsync.WithSetNXOnExtend())
}

func (l *redsyncLock) Acquire(ctx context.Context, name string, ttl time.Duration) (bool, error) {
	m := l.sync.NewMutex(name, append([]redsync.Option{
		redsync.WithExpiry(ttl), redsync.WithTries(1), redsync.WithTimeoutFactor(0.5),
	}, l.options...)...)
	err := m.LockContext(ctx)
	if isTaken(err) || errors.Is(err, redsync.ErrFailed) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	l.mutex = m
	return true, nil
}

func (l *redsyncLock) Extend(ctx context.Context, _ time.Duration) (bool, error) {
	return notMine(l.mutex.ExtendContext(ctx))
}

func (l *redsyncLock) Release(ctx context.Context) (bool, error) {
	return notMine(l.mutex.UnlockContext(ctx))
}

// notMine distinguishes "not ours any more" from a failure: redsync returns
// both as an error.
func notMine(ok bool, err error) (bool, error) {
	if isTaken(err) || errors.Is(err, redsync.ErrExtendFailed) || errors.Is(err, redsync.ErrLockAlreadyExpired) {
		return false, nil
	}
	return ok, err
}

// isTaken reports whether nodes answered that another client has the lock: a
// quorum of them, or some when the votes are split.
func isTaken(err error) bool {
	var quorum *redsync.ErrTaken
	var node *redsync.ErrNodeTaken
	return errors.As(err, &quorum) || errors.As(err, &node)
}
