package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/node"
)

// onceHint is how a nightly job names its occurrences.
const onceHint = `for a nightly job give --once "$(date -u +%F)"`

// checkOnce rejects what cannot be combined. The library checks the text.
func (f *runFlags) checkOnce(names int) error {
	switch {
	case !f.given("once"):
		return nil
	case f.occurrence == "":
		return usageError(errors.New("--once is empty"), onceHint)
	case f.shared || f.given("slots"):
		return usageError(errors.New("--once cannot be combined with --shared or --slots: one run completes an occurrence"), "leave out --once, or the other")
	case names > 1:
		return usageError(fmt.Errorf("--once takes one name, and there are %d: an occurrence belongs to one job", names), "give one name")
	}
	return nil
}

// unmarked is the outcome of a CMD that succeeded, which too few nodes noted.
func (f *runFlags) unmarked(name string, err error) *outcome {
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
// occurrence is completed.
func (t *task) lock(ctx context.Context, opts redlatch.LockOptions) (*locks, error) {
	if t.f.given("once") {
		return t.lockOnce(ctx, opts)
	}
	leases, err := t.client.LockAll(ctx, t.names, &opts)
	if err != nil {
		return nil, err
	}
	return &locks{leases, leases.All, func(error) error { return leases.Release(context.Background()) }}, nil
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
			err = &outcome{event: "completed", err: fmt.Errorf("%s %s: already completed", t.names[0], t.f.occurrence)}
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

// slotVariable is the slot of CMD. It is empty in a run without slots within one
// with slots.
const slotVariable = "REDLATCH_SLOT"

// shareFlags say with whom a lock is shared. The zero value is a lock with one
// holder.
type shareFlags struct {
	shared bool
	slots  int
}

// checkShare rejects flags that are out of range or cannot be combined, for a
// number of names.
func (f *lockFlags) checkShare(names int) error {
	switch slots := f.given("slots"); {
	case slots && f.shared:
		return usageError(errors.New("--shared and --slots cannot be combined: a lock has readers or slots"),
			"leave out --slots to share it with any number of readers, or --shared to limit how many hold it")
	case slots && (f.slots < 1 || f.slots > node.MaxSlots):
		// For the library 0 is a lock without slots, which is not what --slots 0
		// means.
		return &redlatch.ConfigError{Field: "--slots", Value: f.slots, Bound: fmt.Sprintf("between 1 and %d", node.MaxSlots)}
	case slots && names > 1:
		return usageError(fmt.Errorf("--slots takes one name, and there are %d: a slot belongs to one lock", names),
			"give one name, or nest the runs: redlatch run --slots K NAME -- redlatch run NAME -- CMD")
	}
	return nil
}

// before says who waits before us, if there is room for us beside a holder; else
// it returns nothing.
func (f *shareFlags) before(h redlatch.Holder) string {
	switch {
	case f.shared && h.Shared:
		return "a writer is before us"
	case f.slots > 0 && h.Slots == f.slots && h.Holders < h.Slots:
		return "one that wants the whole lock is before us"
	}
	return ""
}

// hint puts before a hint who waits before us, if the error of a lock that was
// refused names a holder beside which there is room.
func (f *shareFlags) hint(err error, hint string) string {
	var held *redlatch.HeldError
	if !errors.As(err, &held) || len(held.Holders) == 0 {
		return hint
	}
	if who := f.before(held.Holders[0]); who != "" {
		return who + "; " + hint
	}
	return hint
}

// leaseParts is what a lease has in its handle, and does not show otherwise.
type leaseParts struct {
	Value  string // on the nodes
	Shared bool
	Slots  int
}

func partsOf(lease *redlatch.Lease) leaseParts {
	var parts leaseParts
	_, text, _ := strings.Cut(lease.Handle(), ".")
	if plain, err := base64.RawURLEncoding.DecodeString(text); err == nil {
		json.Unmarshal(plain, &parts)
	}
	return parts
}

// share says with whom a lock is shared.
func (f fields) share(shared bool, slots, slot int) fields {
	if slots > 0 {
		return f.add("slots", slots).add("slot", slot)
	}
	return f.with("shared", shared)
}

func shareOf(lease *redlatch.Lease) fields {
	parts := partsOf(lease)
	return fields{}.share(parts.Shared, parts.Slots, lease.Slot())
}

// count is a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// holdersText says how many hold a lock together with a holder. It is empty for
// a lock with one holder.
func holdersText(h redlatch.Holder) string {
	switch {
	case h.Slots > 0:
		return fmt.Sprintf("%d of %s", h.Holders, count(h.Slots, "slot"))
	case h.Shared:
		return count(h.Holders, "reader")
	}
	return ""
}

// roleText says what a holder has of a lock that is shared.
func roleText(h redlatch.Holder) string {
	switch {
	case h.Slots > 0:
		return fmt.Sprintf(", slot %d of %d", h.Slot, h.Slots)
	case h.Shared:
		return ", a reader"
	}
	return ""
}

// wishText says what a waiter waits for. A waiter for the whole lock says so
// only where others share it.
func wishText(s *admin.LockState, w admin.WaiterState) string {
	switch {
	case w.Slots > 0:
		return fmt.Sprintf(", for one of %s", count(w.Slots, "slot"))
	case w.Shared:
		return ", as a reader"
	case isShared(s):
		return ", for the whole lock"
	}
	return ""
}

// isShared reports whether a lock has holders or waiters that share it.
func isShared(s *admin.LockState) bool {
	return slices.ContainsFunc(s.Holders, func(h redlatch.Holder) bool { return h.Shared || h.Slots > 0 }) ||
		slices.ContainsFunc(s.Waiters, func(w admin.WaiterState) bool { return w.Shared || w.Slots > 0 })
}
