package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/redlatch/redlatch"
)

// onceFlag is --once. The zero value is a run of no particular occurrence.
type onceFlag struct {
	occurrence string
	onceSet    bool
}

func (f *onceFlag) registerOnce(flags *pflag.FlagSet) {
	flags.StringVar(&f.occurrence, "once", "", "run CMD only if the `OCCURRENCE` of the job NAME, such as a date, is not completed; exit status 0 of CMD completes it")
}

// onceHint is how a nightly job names its occurrences.
const onceHint = `for a nightly job give --once "$(date -u +%F)"`

// checkOnce rejects what cannot be combined. The library checks the text.
func (f *onceFlag) checkOnce(names int, share shareFlags) error {
	switch {
	case !f.onceSet:
		return nil
	case f.occurrence == "":
		return usageError(errors.New("--once is empty"), onceHint)
	case share.shared || share.slotsSet:
		return usageError(errors.New("--once cannot be combined with --shared or --slots: one run completes an occurrence"), "leave out --once, or the other")
	case names > 1:
		return usageError(fmt.Errorf("--once takes one name, and there are %d: an occurrence belongs to one job", names), "give one name")
	}
	return nil
}

// isDone is the outcome of an occurrence that was done before.
func (f *onceFlag) isDone(name string) *outcome {
	return &outcome{event: "completed", err: fmt.Errorf("%s %s: already completed", name, f.occurrence)}
}

// unmarked is the outcome of a CMD that succeeded, which too few nodes noted.
func (f *onceFlag) unmarked(name string, err error) *outcome {
	return &outcome{code: exitLost, event: "unmarked",
		err:  fmt.Errorf("%s %s: CMD succeeded, but could not be recorded as completed, and may run again: %s", name, f.occurrence, lostCause(err)),
		hint: "CMD must be harmless to repeat"}
}

// locks are what CMD runs under.
type locks struct {
	span
	all []*redlatch.Lease
	// free releases them after CMD has failed, with an error, or succeeded.
	free func(failed error) error
}

// span is the life of one lease, or of several.
type span interface {
	Remaining() time.Duration
	Context() context.Context
	Err() error
	Extend(context.Context) error
}

// errFailed says that CMD did not succeed.
var errFailed = errors.New("CMD failed")

// lock waits for the locks. It returns an outcome as the error if the
// occurrence is done.
func (t *task) lock(ctx context.Context, opts redlatch.LockOptions) (*locks, error) {
	if t.f.onceSet {
		return t.lockOnce(ctx, opts)
	}
	leases, err := t.client.LockAll(ctx, t.names, &opts)
	if err != nil {
		return nil, err
	}
	return &locks{leases, leases.All(), func(error) error { return leases.Release(context.Background()) }}, nil
}

// lockOnce is lock with --once. Client.Once runs beside us: its function is what
// we do until free is called.
func (t *task) lockOnce(ctx context.Context, opts redlatch.LockOptions) (*locks, error) {
	acquired, ended, over := make(chan *redlatch.Lease), make(chan error), make(chan error, 1)
	go func() {
		ran, err := t.client.Once(ctx, t.names[0], t.f.occurrence, &opts, func(_ context.Context, lease *redlatch.Lease) error {
			acquired <- lease
			return <-ended
		})
		if !ran && err == nil {
			err = t.f.isDone(t.names[0])
		}
		over <- err
	}()
	select {
	case lease := <-acquired:
		return &locks{lease, []*redlatch.Lease{lease}, func(failed error) error {
			ended <- failed
			return <-over
		}}, nil
	case err := <-over:
		return nil, err
	}
}
