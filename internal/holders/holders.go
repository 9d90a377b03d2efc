// Package holders reads whom nodes name as the holders of a lock, for package redlatch,
// whose type Holder has the fields of holder, and for those above it.
package holders

import (
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

// Kind is redlatch.HolderKind.
type Kind string

// The kinds of holders.
const (
	Lease    Kind = "lease"
	Plain    Kind = "plain"
	Foreign  Kind = "foreign"
	Reserved Kind = "reserved"
)

type holder = struct {
	Owner                       string
	Token                       node.Token
	Since                       time.Time
	Held, Left                  time.Duration
	Kind                        Kind
	Shared                      bool
	Slots, Slot, Holders, Nodes int
}

// Of returns the holders that nodes name in their answers to one request. The one that
// most nodes name comes first.
func Of[H ~holder](results ...observe.Result) (all []H) {
	type key struct{ kind, value string }
	byKey := map[key]int{}
	var holders []holder
	for _, r := range results {
		if r.Err != nil {
			continue
		}
		h, ok := holderOf(r.Reply)
		if !ok {
			continue
		}
		k := key{string(h.Kind), r.Reply.Value + r.Reply.Format}
		if i, known := byKey[k]; known {
			holders[i].Nodes++
			holders[i].Holders = max(holders[i].Holders, h.Holders)
			if h.Token > holders[i].Token {
				// A node may know only an earlier proposal of this claim.
				holders[i].Token, holders[i].Since, holders[i].Held = h.Token, h.Since, h.Held
			}
			if holders[i].Left != node.NoExpiry && (h.Left == node.NoExpiry || h.Left > holders[i].Left) {
				holders[i].Left = h.Left
			}
			continue
		}
		byKey[k] = len(holders)
		holders = append(holders, h)
	}
	slices.SortStableFunc(holders, func(a, b holder) int { return b.Nodes - a.Nodes })
	for _, h := range holders {
		all = append(all, H(h))
	}
	return all
}

// holderOf returns the holder by one node's reply: Held, Foreign or Reserved.
// It returns false for any other reply.
func holderOf(r node.Reply) (holder, bool) {
	h := holder{Left: r.Left, Nodes: 1, Holders: 1}
	switch r.Status {
	case node.Held:
		owner, ours := protocol.OwnerOf(r.Value)
		if !ours {
			// A token that the node knows is not this holder's.
			h.Kind, h.Owner = Plain, shownValue(r.Value)
			break
		}
		h.Kind, h.Owner, h.Token = Lease, owner, r.HolderToken
		h.Since, h.Held = heldSince(r.HolderToken, r.Now)
		h.Shared, h.Slots, h.Slot = r.Share.Mode == node.Shared, int(r.Share.Slots), int(r.Share.Slot)
		h.Holders = max(r.Holders, 1)
	case node.Foreign:
		h.Kind, h.Owner = Foreign, r.Format
		if !protocol.Printable(h.Owner, 1, maxShownValue) {
			h.Owner = shownValue(h.Owner)
		}
	case node.Reserved:
		h.Kind, h.Left = Reserved, 0
	default:
		return holder{}, false
	}
	return h, true
}

// heldSince returns when a token was granted, and how long ago that was on the
// node's clock: a token is the time of its acquisition. It returns the zero
// time if the token is more than a second in the future, as it is after clocks
// were set back. Less than that is normal, because clocks differ a little.
func heldSince(token node.Token, now time.Time) (time.Time, time.Duration) {
	if token == 0 {
		return time.Time{}, 0
	}
	held := now.Sub(time.UnixMicro(int64(token)))
	if held < -time.Second {
		return time.Time{}, 0
	}
	held = max(held, 0)
	return now.Add(-held), held
}

// maxShownValue is how many bytes of a foreign value are shown.
const maxShownValue = 64

// shownValue quotes a value that any client may have set. It marks a value that
// it cuts.
func shownValue(value string) string {
	n, mark := len(value), ""
	if n > maxShownValue {
		n, mark = maxShownValue, "…"
		for i := range utf8.UTFMax - 1 { // do not cut a rune in half
			if utf8.RuneStart(value[n-i]) {
				n -= i
				break
			}
		}
	}
	return strconv.QuoteToGraphic(value[:n]) + mark
}
