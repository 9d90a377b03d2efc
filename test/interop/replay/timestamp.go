package replay

import (
	"context"
	"errors"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/test/interop/drive"
)

// timestampLock is the way of before SET had NX, as redis-objects has it: the
// key has no expiry, its value says until when the lock is valid, and whoever
// finds one of the past replaces it. A value that is no number counts as 0, and
// so as long past.
type timestampLock struct {
	server *goredis.Client
	key    string
	until  time.Time
}

func newTimestampLock(server *goredis.Client) drive.Lock { return &timestampLock{server: server} }

func (l *timestampLock) Acquire(ctx context.Context, name string, ttl time.Duration) (bool, error) {
	until := time.Now().Add(ttl)
	value := strconv.FormatFloat(float64(until.UnixMicro())/1e6, 'f', 6, 64)
	taken := func() (bool, error) {
		l.key, l.until = name, until
		return true, nil
	}
	if ok, err := yes(l.server.Do(ctx, "SETNX", name, value).Result()); err != nil {
		return false, err
	} else if ok {
		return taken()
	}
	for _, look := range [][]any{{"GET", name}, {"GETSET", name, value}} {
		old, err := l.server.Do(ctx, look...).Text()
		if err != nil && !errors.Is(err, goredis.Nil) {
			return false, err
		}
		if n, err := strconv.ParseFloat(old, 64); err == nil && n >= float64(time.Now().UnixMicro())/1e6 {
			return false, nil
		}
	}
	return taken()
}

func (l *timestampLock) Extend(context.Context, time.Duration) (bool, error) {
	return false, drive.ErrCannot
}

// Release deletes the key without a look at the value, unless our own time is
// over.
func (l *timestampLock) Release(ctx context.Context) (bool, error) {
	if time.Now().After(l.until) {
		return false, nil
	}
	return yes(l.server.Do(ctx, "DEL", l.key).Result())
}
