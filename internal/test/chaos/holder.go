//go:build unix

package chaos

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/fence"
)

// held is a lease that the client has.
type held struct {
	*taker
	lease *redlatch.Lease
	seq   int
	share Share
	began time.Time
}

// work is what a holder does with its lease.
type work struct {
	hold      time.Duration
	extend    bool
	downgrade bool
}

// deadline returns the lease's deadline on the clock that all processes share.
// It may be too early by the time it takes to read the clock, and is never too
// late. It is 0 if the lease has ended before its deadline.
func (h *held) deadline() int64 {
	t := now()
	if left := h.lease.Remaining(); left > 0 {
		return t + int64(left)
	}
	return 0
}

// ended reports that the lease has ended, unless that was by our own release.
func (h *held) ended() {
	if cause := context.Cause(h.lease.Context()); !errors.Is(cause, redlatch.ErrReleased) {
		e := h.event(Lost)
		e.Deadline = h.deadline()
		h.tell(failed(e, cause, h.began))
	}
}

// use uses the lock like code that trusts it: it reads, takes some time, and
// writes, without checking the lease again. A reader reads once more instead. A
// writer that is downgraded writes at once, and then reads.
func (h *held) use(p plan, w work) {
	parts := p.parts()
	if h.share.Mode == Slot {
		parts = parts[h.share.Slot : h.share.Slot+1]
	}
	c := caller{client: h.Client, token: h.lease.Token(), parts: parts, of: parts[h.rng.IntN(len(parts))]}
	first := Claim
	if h.share.Mode == Reader {
		first = Look
	}
	was, err := h.look(c, first)
	if w.downgrade {
		wait(h.ctx, w.hold/3)
		if err == nil {
			err = h.write(c, was)
		}
		h.prolong(Downgrade, Downgraded, h.lease.Downgrade)
	}
	wait(h.ctx, w.hold/2)
	if w.extend {
		h.prolong(Extend, Extended, h.lease.Extend)
	}
	wait(h.ctx, w.hold-w.hold/2)
	switch {
	case err != nil:
	case w.downgrade || h.share.Mode == Reader:
		h.look(c, Look)
	default:
		h.write(c, was)
	}
}

func (h *held) look(c caller, s Step) (was int64, err error) {
	was, err = h.store.look(c, s)
	h.tell(outcome(h.step(c, s), Read, was, err))
	return was, err
}

func (h *held) write(c caller, was int64) error {
	e := h.step(c, Write)
	e.To = was + 1
	err := h.store.write(c, was)
	h.tell(outcome(e, Wrote, was, err))
	return err
}

// step is the event of a step at the resource, as far as it is known before.
func (h *held) step(c caller, s Step) Event {
	e := h.event("")
	e.Step, e.Part = s, c.of
	return e
}

// outcome is the event of a step at the resource.
func outcome(e Event, well Kind, was int64, err error) Event {
	e.Kind, e.From = well, was
	switch {
	case errors.Is(err, fence.ErrStale):
		e.Kind, e.Err = Refused, err.Error()
	case err != nil:
		e.Kind, e.Err = Failed, err.Error()
	}
	return e
}

// event is one about the lease.
func (h *held) event(kind Kind) Event {
	return Event{Kind: kind, Seq: h.seq, Name: h.lease.Name(), Share: h.share, Token: uint64(h.lease.Token())}
}

// prolong extends or downgrades the lease.
func (h *held) prolong(begins, ends Kind, do func(context.Context) error) {
	e := h.event(begins)
	h.tell(e)
	ctx, cancel := context.WithTimeout(context.Background(), h.Bounds.MaxTTL)
	defer cancel()
	err := do(ctx)
	e.Kind, e.Deadline = ends, h.deadline()
	if err != nil {
		e.Err = err.Error()
	}
	h.tell(e)
}

func (h *held) release() {
	e := h.event(Release)
	e.Deadline = h.deadline()
	h.tell(e)
	ctx, cancel := context.WithTimeout(context.Background(), h.Bounds.MaxTTL)
	defer cancel()
	e.Kind, e.Deadline = Released, 0
	if err := h.lease.Release(ctx); err != nil {
		e = failed(e, err, h.began)
	}
	h.tell(e)
}
