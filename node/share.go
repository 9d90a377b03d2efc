package node

import "fmt"

// Mode is the kind of lock of a Request. A node refuses a mode that it does not
// know.
type Mode uint8

// The modes.
const (
	// Exclusive has one holder. It conflicts with every other holder.
	Exclusive Mode = iota
	// Shared has any number of holders, the readers. It conflicts with an
	// Exclusive holder, and with every Slotted one.
	Shared
	// Slotted has at most Slots holders, each in a numbered slot. It conflicts
	// with an Exclusive holder, with Shared ones, with the same slot, and with
	// every slot of another number of slots.
	Slotted
)

// String returns the mode in one word.
func (m Mode) String() string {
	if int(m) >= len(modeTexts) {
		return "unknown mode"
	}
	return modeTexts[m]
}

var modeTexts = [...]string{Exclusive: "exclusive", Shared: "shared", Slotted: "slotted"}

const (
	// MaxSlots is the highest number of slots.
	MaxSlots = 64
	// MaxHolders is the highest number of holders of one name. The next reader
	// waits.
	MaxHolders = 10_000
)

// Share is what a Request takes of a name, or a holder has of it. The zero
// value is all of it: an exclusive lock.
//
// Two shares that conflict are never held on one node at one time. So they
// never both have a majority, and no more than one client holds a slot.
type Share struct {
	Mode Mode
	// Slots is the number of slots of a Slotted share, from 1 to MaxSlots; else
	// 0.
	Slots uint8
	// Slot is its slot, from 0 to Slots-1; else 0. An OpAcquire takes another
	// slot if this one is taken: the lowest that is free. All other operations
	// are about this slot alone.
	Slot uint8
}

// Text returns the share in words. It is no String, because Request embeds
// Share, and would be printed as its share alone.
func (s Share) Text() string {
	if s.Mode == Slotted {
		return fmt.Sprintf("slot %d of %d", s.Slot, s.Slots)
	}
	return s.Mode.String()
}

// Check returns an error if the share is not valid.
func (s Share) Check() error {
	switch {
	case s.Mode > Slotted:
		return &ConfigError{Field: "Mode", Value: uint8(s.Mode), Bound: "Exclusive, Shared or Slotted"}
	case s.Mode != Slotted && (s.Slots != 0 || s.Slot != 0):
		return &ConfigError{Field: "Slots", Value: fmt.Sprintf("%d (slot %d)", s.Slots, s.Slot), Bound: "0, unless Mode is Slotted"}
	case s.Mode == Slotted && (s.Slots < 1 || s.Slots > MaxSlots):
		return &ConfigError{Field: "Slots", Value: s.Slots, Bound: "between 1 and 64"}
	case s.Mode == Slotted && s.Slot >= s.Slots:
		return &ConfigError{Field: "Slot", Value: s.Slot, Bound: fmt.Sprintf("between 0 and %d", s.Slots-1)}
	}
	return nil
}

// Kind returns the share without its slot, as a text that nodes store and sort
// by: "" for Exclusive, "r" for Shared, "s" and two digits for Slotted.
func (s Share) Kind() string {
	switch s.Mode {
	case Shared:
		return "r"
	case Slotted:
		return fmt.Sprintf("s%02d", s.Slots)
	}
	return ""
}

// SlotSet is a set of slots.
type SlotSet uint64

// Has reports whether a slot is in the set.
func (s SlotSet) Has(slot uint8) bool { return s&(1<<slot) != 0 }
