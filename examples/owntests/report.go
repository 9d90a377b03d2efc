// Package report stands for a program of your own that uses locks; its tests
// show how to test one.
package report

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch"
)

// ErrElsewhere is returned when another copy is at it.
var ErrElsewhere = errors.New("the report is being written elsewhere")

// Job writes a report, one copy at a time.
type Job struct {
	Locks *redlatch.Client
	Write func(ctx context.Context, token redlatch.Token) error
}

// Run writes the report, unless another copy is still at it after a second.
func (j *Job) Run(ctx context.Context) error {
	opts := redlatch.LockOptions{TTL: 5 * time.Second, Wait: time.Second}
	err := j.Locks.Do(ctx, "report", &opts, func(ctx context.Context, lease *redlatch.Lease) error {
		return j.Write(ctx, lease.Token())
	})
	if errors.Is(err, redlatch.ErrHeld) {
		return ErrElsewhere
	}
	return err
}
