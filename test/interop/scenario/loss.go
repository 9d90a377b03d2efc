//go:build unix

package scenario

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/poll"

	"github.com/redlatch/redlatch/test/interop/foreign"
)

// death: the foreign holder is killed, and redlatch gets the lock when it has
// expired, and not before.
func death(s *Stage) Cell {
	victim, err := s.process()
	s.must(err == nil, "does not start: %v", err)
	defer victim.Kill()
	before := s.take(victim, short)
	victim.Kill()
	lease := s.ours(redlatch.LockOptions{TTL: long})
	had, alive := time.Now(), 0
	for _, x := range before {
		if x.kind != "none" && x.from.Add(x.left).Sub(had) > 10*time.Millisecond {
			alive++
		}
	}
	s.weMust(alive <= len(before)-s.quorum(), "has the lock while %d keys of the dead holder stand", alive)
	s.free(lease)
	return yes()
}

// outlived lets the foreign client hold the lock and freezes it, with its
// timers, until redlatch has the lock.
func (s *Stage) outlived() *redlatch.Lease {
	s.take(s.it, short)
	s.it.Freeze()
	lease := s.ours(redlatch.LockOptions{TTL: long})
	s.it.Thaw()
	return lease
}

// lateRelease: a foreign holder whose time is over releases a lock that is
// ours.
func lateRelease(s *Stage) Cell {
	lease := s.outlived()
	if s.client.Renews {
		time.Sleep(short / 2) // its own timers, which were frozen, fire first
	}
	before := s.look()
	a := s.it.Release()
	if harm := untouched(before, s.look()); harm != "" {
		s.must(false, "%s, though it was redlatch's. %s", harm, s.stolen(lease, harm))
	}
	s.free(lease)
	if a.OK() {
		return Cell{Holds, "harmless, not reported"}
	}
	return Cell{Holds, "harmless, reported"}
}

// lateExtension: a foreign holder whose time is over extends a lock that is
// ours, and one that nobody holds.
func lateExtension(s *Stage) Cell {
	lease := s.outlived()
	before := s.look()
	extend := func() foreign.Answer {
		if !s.client.Renews {
			return s.it.Extend(2 * long)
		}
		time.Sleep(short) // its own timers extend it, which we cannot observe
		return foreign.Answer{Word: "cannot"}
	}
	a := extend()
	if harm := untouched(before, s.look()); harm != "" {
		stolen := s.stolen(lease, harm)
		s.it.Release()
		s.must(false, "steals: it %s, though it was redlatch's. %s", harm, stolen)
	}
	s.must(!a.OK(), "says that it extended, and it has nothing")
	s.free(lease)
	if a.Word == "cannot" && !s.client.Renews {
		s.it.Release()
		return Cell{Holds, "has none"}
	}
	s.it.Release()

	s.name += "-free"
	s.take(s.it, short)
	s.it.Freeze()
	gone := poll.Holds(soon, func() bool { return there(s.look()) == 0 })
	s.it.Thaw()
	s.must(gone, "does not run out")
	a = extend()
	creates := there(s.look()) > 0
	s.it.Release()

	s.name += "-held"
	s.extendsInTime()
	switch {
	case creates:
		return Cell{Remark, "refused; but takes a free lock again, and does not say that it was lost"}
	case s.client.Renews:
		return Cell{Holds, "refused (by itself)"}
	}
	return Cell{Holds, "refused"}
}

// extendsInTime ends the scenario unless an extension of a held lock works.
func (s *Stage) extendsInTime() {
	if s.client.Renews {
		const lives = 3 * short // some renew late, and a busy machine later
		s.take(s.it, lives)
		time.Sleep(lives * 3 / 2)
		s.must(there(s.look()) >= s.quorum(), "does not keep what it holds")
		s.it.Release()
		return
	}
	before := s.take(s.it, short)
	time.Sleep(short / 4) // an extension shows only after some time has passed
	a := s.it.Extend(short)
	s.must(a.OK(), "cannot extend what it holds: %s", a)
	longer := 0
	for i, x := range s.look() {
		// The moment of expiry counts: reading five servers takes time.
		if x.from.Add(x.left).After(before[i].to.Add(before[i].left + short/8)) {
			longer++
		}
	}
	s.must(longer >= s.quorum(), "says that it extended, and %d of its keys live longer", longer)
	s.it.Release()
}

// ourLoss: redlatch's time is over, and a foreign client holds the lock. A late
// release and a late extension of ours change nothing.
func ourLoss(s *Stage) Cell {
	lease := s.ours(redlatch.LockOptions{TTL: short, NoKeepAlive: true})
	handle := lease.Handle()
	select {
	case <-lease.Context().Done():
	case <-time.After(soon):
		s.weMust(false, "is not told that its time is over")
	}
	cause := context.Cause(lease.Context())
	s.weMust(errors.Is(cause, redlatch.ErrLost), "is told %v when its time is over", cause)
	before := s.take(s.it, long)
	// The lease knows that it is lost and sends nothing. A process that uses
	// the handle does not know, and sends both.
	_, err := s.other.Attach(s.ctx, handle)
	s.weMust(errors.Is(err, redlatch.ErrLost), "extends what it lost: %v", err)
	err = s.other.Release(s.ctx, handle)
	s.weMust(errors.Is(err, redlatch.ErrLost), "releases what it lost: %v", err)
	err = lease.Release(s.ctx)
	s.weMust(errors.Is(err, redlatch.ErrLost), "releases what it lost: %v", err)
	s.weMust(untouched(before, s.look()) == "", "%s, though it was the other's", untouched(before, s.look()))
	a := s.it.Release()
	s.must(a.OK(), "cannot release what it holds: %s", a)
	return Cell{Holds, "harmless"}
}
