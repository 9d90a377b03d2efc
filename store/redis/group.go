package redis

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch/node"
)

// groupMark begins what a script says of a group; lua/lib/group.lua has the
// format.
const groupMark = "redlatch-group-2 "

const (
	groupHead  = 5 + 16 + 16         // precedes the holders
	holderHead = 16 + 20 + 3 + 2 + 5 // precedes a holder's value
)

// group is what a script says of the holders that share a lock.
type group struct {
	count       int
	first, last time.Time     // when the first and the last of them expires
	holders     []node.Holder // the one with the lowest token, or all of them
}

// parseGroup reads a group. It reports false for a text that is none.
func parseGroup(text string) (g group, ok bool) {
	rest, ok := strings.CutPrefix(text, groupMark)
	if !ok || len(rest) < groupHead+holderHead {
		return group{}, false
	}
	count, err1 := strconv.ParseUint(rest[:5], 10, 31)
	first, err2 := strconv.ParseUint(rest[5:21], 10, 63)
	last, err3 := strconv.ParseUint(rest[21:groupHead], 10, 63)
	if err1 != nil || err2 != nil || err3 != nil || count == 0 {
		return group{}, false
	}
	g.count, g.first, g.last = int(count), time.UnixMicro(int64(first)), time.UnixMicro(int64(last))
	for rest = rest[groupHead:]; rest != ""; {
		h, size, ok := parseHolder(rest)
		if !ok {
			return group{}, false
		}
		g.holders, rest = append(g.holders, h), rest[size:]
	}
	slices.SortFunc(g.holders, func(a, b node.Holder) int {
		return cmp.Or(cmp.Compare(a.Token, b.Token), cmp.Compare(a.Value, b.Value))
	})
	return g, true
}

// parseHolder reads the holder that a text begins with, and returns its length.
func parseHolder(text string) (h node.Holder, size int, ok bool) {
	if len(text) < holderHead {
		return h, 0, false
	}
	until, err1 := strconv.ParseUint(text[:16], 10, 63)
	token, err2 := strconv.ParseUint(text[16:36], 10, 64)
	share, ok := parseKind(strings.TrimRight(text[36:39], "-"))
	slot, err3 := strconv.ParseUint(text[39:41], 10, 8)
	length, err4 := strconv.ParseUint(text[41:holderHead], 10, 32)
	share.Slot = uint8(slot)
	if err1 != nil || err2 != nil || err3 != nil || err4 != nil || !ok || share.Mode == node.Exclusive || share.Check() != nil ||
		token > uint64(node.MaxToken) || len(text)-holderHead < int(length) {
		return h, 0, false
	}
	size = holderHead + int(length)
	return node.Holder{Value: text[holderHead:size], Token: node.Token(token), Until: time.UnixMicro(int64(until)), Share: share}, size, true
}

// holdersOf returns the holders that a Held reply of the look script is about.
// text is the key's value, or a group. A plain one is the only holder, and Left and
// HolderToken are about it.
func holdersOf(reply node.Reply, text string) []node.Holder {
	if g, ok := parseGroup(text); ok {
		return g.holders
	}
	h := node.Holder{Value: text, Token: reply.HolderToken}
	if reply.Left != node.NoExpiry {
		h.Until = reply.Now.Add(reply.Left)
	}
	return []node.Holder{h}
}

// describe completes a Held reply to a request for a share.
func describe(reply *node.Reply, share node.Share) {
	g, ok := parseGroup(reply.Value)
	if !ok {
		reply.Holders = 1
		return
	}
	h := g.holders[0]
	reply.Value, reply.HolderToken, reply.Share, reply.Holders = h.Value, h.Token, h.Share, g.count
	until := g.last
	if share.Mode == node.Slotted && h.Mode == node.Slotted && h.Slots == share.Slots {
		until = g.first
	}
	reply.Left = max(until.Sub(reply.Now), 0)
}

// parseSlots reads the free slots: a 1 for each that is free, slot 0 first.
func parseSlots(text string) (free node.SlotSet, ok bool) {
	if len(text) > node.MaxSlots {
		return 0, false
	}
	for i, c := range []byte(text) {
		if c != '0' && c != '1' {
			return 0, false
		}
		free |= node.SlotSet(c-'0') << i
	}
	return free, true
}

// parseKind reads what Share.Kind returns.
func parseKind(kind string) (node.Share, bool) {
	switch {
	case kind == "":
		return node.Share{}, true
	case kind == "r":
		return node.Share{Mode: node.Shared}, true
	case len(kind) == 3 && kind[0] == 's':
		s := node.Share{Mode: node.Slotted, Slots: (kind[1]-'0')*10 + kind[2] - '0'}
		return s, s.Check() == nil && s.Kind() == kind
	}
	return node.Share{}, false
}

// cutKind takes the kind off the member of a queue.
func cutKind(text string) (node.Share, string) {
	kind, rest, ok := strings.Cut(text, "\x00")
	if share, known := parseKind(kind); ok && known && kind != "" {
		return share, rest
	}
	return node.Share{}, text
}

// shareText returns a share as the scripts expect it; lua/acquire.lua has the
// format.
func shareText(s node.Share) string {
	switch s.Mode {
	case node.Shared:
		return "r"
	case node.Slotted:
		return fmt.Sprintf("s%02d%02d", s.Slots, s.Slot)
	}
	return ""
}
