//go:build unix

package scenario

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/fence"
)

// stolen checks what redlatch guarantees after the foreign client has stolen
// its lock: the loss is reported, and the token keeps a stale holder off the
// resource. It returns the result as text for the matrix.
func (s *Stage) stolen(lease *redlatch.Lease, harm string) string {
	if harm == lengthened || harm == shortened {
		return "The lock is still redlatch's"
	}
	gate, err := fence.NewGate(nil)
	s.weMust(err == nil, "cannot guard the resource: %v", err)
	err = gate.Check(s.ctx, s.name, lease.Token())
	s.weMust(err == nil, "cannot write to its resource: %v", err)

	// The next extension finds out. The test does not ask for it: redlatch must
	// report the loss by itself.
	select {
	case <-lease.Context().Done():
	case <-time.After(long + soon):
		s.weMust(false, "is not told that its lock is gone")
	}
	cause := context.Cause(lease.Context())
	s.weMust(errors.Is(cause, redlatch.ErrLost), "is told %v when its lock was taken", cause)

	// The thief releases, or is broken; the next holder's token is above ours.
	s.it.Release()
	if there(s.look()) > 0 {
		_, err := admin.New(s.other).Break(s.ctx, s.name, &admin.BreakOptions{Foreign: true})
		s.weMust(err == nil, "cannot break it: %v", err)
	}
	next, err := s.other.Lock(s.ctx, s.name, &redlatch.LockOptions{TTL: long, Wait: soon})
	s.weMust(err == nil, "does not get the lock after the thief: %v", err)
	defer next.Release(s.ctx)
	s.weMust(next.Token() > lease.Token(), "has token %d after %d", next.Token(), lease.Token())
	err = gate.Check(s.ctx, s.name, next.Token())
	s.weMust(err == nil, "cannot write to its resource: %v", err)
	err = gate.Check(s.ctx, s.name, lease.Token())
	s.weMust(errors.Is(err, fence.ErrStale), "writes with a stale token: %v", err)
	return "The loss is reported, and the token refuses the stale writer"
}
