package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/node"
)

// slotVariable is the slot of CMD. It is empty in a run without slots within one
// with slots.
const slotVariable = "REDLATCH_SLOT"

// shareFlags say with whom a lock is shared. The zero value is a lock with one
// holder.
type shareFlags struct {
	shared   bool
	slots    int
	slotsSet bool
}

// registerShare adds the flags.
func (f *shareFlags) registerShare(flags *pflag.FlagSet) {
	flags.BoolVar(&f.shared, "shared", false, "hold the lock together with others that give --shared, the readers, and never beside one that does not, a writer")
	flags.IntVar(&f.slots, "slots", 0, fmt.Sprintf("let `K` hold the lock at a time, from 1 to %d, each with a slot of its own in $%s; all must give the same number", node.MaxSlots, slotVariable))
}

// checkShare rejects flags that are out of range or cannot be combined, for a
// number of names.
func (f *shareFlags) checkShare(names int) error {
	switch {
	case f.slotsSet && f.shared:
		return usageError(errors.New("--shared and --slots cannot be combined: a lock has readers or slots"),
			"leave out --slots to share it with any number of readers, or --shared to limit how many hold it")
	case f.slotsSet && (f.slots < 1 || f.slots > node.MaxSlots):
		// For the library 0 is a lock without slots, which is not what --slots 0
		// means.
		return &redlatch.ConfigError{Field: "--slots", Value: f.slots, Bound: fmt.Sprintf("between 1 and %d", node.MaxSlots)}
	case f.slotsSet && names > 1:
		return usageError(fmt.Errorf("--slots takes one name, and there are %d: a slot belongs to one lock", names),
			"give one name, or nest the runs: redlatch run --slots K NAME -- redlatch run NAME -- CMD")
	}
	return nil
}

// options returns the options of a lock.
func (f *shareFlags) options() redlatch.LockOptions {
	return redlatch.LockOptions{Shared: f.shared, Slots: f.slots}
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

// shareJSON says with whom a lock is shared. Slot is present if Slots is.
type shareJSON struct {
	Shared bool `json:"shared,omitempty"`
	Slots  int  `json:"slots,omitempty"`
	Slot   *int `json:"slot,omitempty"`
}

func newShareJSON(shared bool, slots, slot int) shareJSON {
	s := shareJSON{Shared: shared, Slots: slots}
	if slots > 0 {
		s.Slot = &slot
	}
	return s
}

func shareOf(lease *redlatch.Lease) shareJSON {
	parts := partsOf(lease)
	return newShareJSON(parts.Shared, parts.Slots, lease.Slot())
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

// holding returns the holders that a majority names; all that are named, if none
// has one.
func holding(s *admin.LockState) []redlatch.Holder {
	n := 0
	for n < len(s.Holders) && s.Holders[n].Nodes > len(s.Nodes)/2 {
		n++
	}
	if n == 0 {
		return s.Holders
	}
	return s.Holders[:n]
}
