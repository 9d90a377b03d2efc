package redlatch

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// handlePrefix begins a handle. The number is the version of its format.
const handlePrefix = "redlatch1."

// handle is a lease as text. The token is a string, because JSON readers that
// keep numbers as doubles would round it.
type handle struct {
	Name  string `json:"name"`
	Key   string `json:"key"`
	Value string `json:"value"`
	Token string `json:"token"`
	TTL   int64  `json:"ttl_ns"`

	Shared bool `json:"shared,omitempty"`
	Slots  int  `json:"slots,omitempty"`
	Slot   int  `json:"slot,omitempty"`
	// Kept is until when the lock stays taken, and Held when MaxHold is over, in
	// microseconds on the nodes' clocks: those of two machines may differ.
	Kept    int64 `json:"kept_us,omitempty"`
	Held    int64 `json:"held_us"`
	MaxHold int64 `json:"max_hold_ns"`

	token Token
}

// options returns the options of the lease. now is the time on the nodes' clocks.
func (h *handle) options(now time.Time) LockOptions {
	o := LockOptions{TTL: time.Duration(h.TTL), Shared: h.Shared, Slots: h.Slots, MaxHold: max(h.heldFor(now), minTTL)}
	if h.Kept != 0 {
		o.Keep = max(time.UnixMicro(h.Kept).Sub(now), 0)
	}
	return o
}

// heldFor returns what is left of MaxHold. It is never more than the whole.
func (h *handle) heldFor(now time.Time) time.Duration {
	return min(time.UnixMicro(h.Held).Sub(now), time.Duration(h.MaxHold))
}

func parseHandle(text string) (handle, error) {
	bad := func() (handle, error) {
		// Not the text itself: a reader of the error could release the lock
		// with it.
		return handle{}, &ConfigError{Field: "handle", Value: fmt.Sprintf("%d bytes", len(text)), Bound: "a text that Handle or Detach returned",
			Problem: "invalid handle"}
	}
	encoded, ok := strings.CutPrefix(text, handlePrefix)
	plain, err := base64.RawURLEncoding.DecodeString(encoded)
	if !ok || err != nil {
		return bad()
	}
	var h handle
	if err := json.Unmarshal(plain, &h); err != nil {
		return bad()
	}
	if _, ours := protocol.OwnerOf(h.Value); !ours || checkText("key", h.Key, 1, maxNameLen) != nil || checkText("name", h.Name, 1, maxNameLen) != nil {
		return bad()
	}
	if h.Shared && h.Slots != 0 || h.Slots < 0 || h.Slots > node.MaxSlots ||
		h.Slot < 0 || h.Slot >= max(h.Slots, 1) || h.Kept < 0 || h.Held < 0 || checkDuration("max_hold", time.Duration(h.MaxHold), minTTL, maxWait) != nil {
		return bad()
	}
	// An extension by 0 would delete the key.
	if checkDuration("ttl", time.Duration(h.TTL), minTTL, maxMaxTTL) != nil {
		return bad()
	}
	if h.token, err = node.ParseToken(h.Token); err != nil {
		return bad()
	}
	return h, nil
}
