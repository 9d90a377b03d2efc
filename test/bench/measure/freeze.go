package measure

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch/test/bench/server"
	"github.com/redlatch/redlatch/test/bench/stats"
)

const (
	// firstPairs is how many pairs after the moment are looked at by themselves,
	// and firstFor how long they may take together.
	firstPairs = 20
	firstFor   = 3 * time.Second
)

// freeze measures pairs before the moment at which a server is frozen, the first
// ones after it, and those that follow.
func (e *entrant) freeze(ctx context.Context) error {
	redis, ok := e.backend.(*server.Redis)
	if !ok {
		return errors.New("there is no server to freeze")
	}
	// What the turn before left behind is over after Settle.
	_, err := e.pairs(ctx, e.Settle, 0)
	healthy, healthyErr := e.pairs(ctx, e.For, 0)
	if err := errors.Join(err, healthyErr, redis.Freeze()); err != nil {
		return err
	}
	first, err := e.pairs(ctx, firstFor, firstPairs)
	after, afterErr := e.pairs(ctx, e.For, 0)
	if err := errors.Join(err, afterErr, redis.Thaw()); err != nil {
		return err
	}
	f := &e.Result.Freeze
	f.Mean, f.First = append(f.Mean, stats.Mean(healthy)), append(f.First, stats.Mean(first))
	f.Healthy = append(f.Healthy, float64(stats.Summarize(healthy).Median))
	f.After = append(f.After, float64(stats.Summarize(after).Median))
	return nil
}

// pairs locks and releases names for a time, at least once, and not more often
// than most, if that is not 0. It returns how long each pair took.
func (e *entrant) pairs(ctx context.Context, length time.Duration, most int) (times []time.Duration, err error) {
	name := newName()
	for end := time.Now().Add(length); len(times) == 0 || time.Now().Before(end) && (most == 0 || len(times) < most); {
		began := time.Now()
		release, err := e.locker.Lock(ctx, name)
		if err == nil {
			err = release.Do()
		}
		times = append(times, time.Since(began))
		if ctx.Err() != nil {
			return times, ctx.Err()
		}
		// It counts with its time: a peer may not release while a server is frozen.
		if err != nil {
			if e.Errors++; e.Error == "" {
				e.Error = err.Error()
			}
		}
	}
	return times, nil
}
