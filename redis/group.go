package redis

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch/node"
)

// groupMark begins the value of a key that several share; lua/lib/group.lua has
// the format.
const groupMark = "redlatch-group-1 "

// groupHead is the length of all that precedes a holder's value.
const groupHead = 16 + 20 + 3 + 2 + 5

// parseGroup reads the holders of a group that have not expired. It reports false
// for a text that is no group.
func parseGroup(text string, now time.Time) (node.Holders, bool) {
	rest, ok := strings.CutPrefix(text, groupMark)
	if !ok {
		return nil, false
	}
	var all node.Holders
	for rest != "" {
		if len(rest) < groupHead {
			return nil, false
		}
		until, err1 := strconv.ParseUint(rest[:16], 10, 63)
		token, err2 := strconv.ParseUint(rest[16:36], 10, 64)
		share, ok := node.ParseKind(strings.TrimRight(rest[36:39], "-"))
		slot, err3 := strconv.ParseUint(rest[39:41], 10, 8)
		length, err4 := strconv.ParseUint(rest[41:groupHead], 10, 32)
		share.Slot = uint8(slot)
		if err1 != nil || err2 != nil || err3 != nil || err4 != nil || !ok || share.Mode == node.Exclusive || share.Check() != nil ||
			token > uint64(node.MaxToken) || len(rest)-groupHead < int(length) {
			return nil, false
		}
		end := groupHead + int(length)
		h := node.Holder{Value: rest[groupHead:end], Token: node.Token(token), Until: time.UnixMicro(int64(until)), Share: share}
		if h.Until.After(now) {
			all = append(all, h)
		}
		rest = rest[end:]
	}
	return all, true
}

// holdersOf returns the holders that a Held reply is about. text is the key's
// value. A plain one is the only holder, and Left and HolderToken are about it.
func holdersOf(reply node.Reply, text string) node.Holders {
	if all, ok := parseGroup(text, reply.Now); ok {
		return all
	}
	h := node.Holder{Value: text, Token: reply.HolderToken}
	if reply.Left != node.NoExpiry {
		h.Until = reply.Now.Add(reply.Left)
	}
	return node.Holders{h}
}

// describe completes a Held reply to a request for a share. A group of which all
// have expired is none.
func describe(reply *node.Reply, share node.Share) {
	all, ok := parseGroup(reply.Value, reply.Now)
	switch {
	case !ok:
		reply.Holders = 1
	case len(all) == 0:
		reply.Status, reply.Value, reply.HolderToken, reply.Left = node.Absent, "", 0, 0
	default:
		all.Describe(reply, share, reply.Now)
	}
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

// cutKind takes the kind off what begins with one: the member of a queue, or a
// message of a script of an older version.
func cutKind(text string) (node.Share, string) {
	kind, rest, ok := strings.Cut(text, "\x00")
	if share, known := node.ParseKind(kind); ok && known && kind != "" {
		return share, rest
	}
	return node.Share{}, text
}

// shareCall turns a request for a share into the run of a script.
func shareCall(req node.Request, place place, token string, marker *expectation) Call {
	fence, turn, queue := sideKeys(req.Name)
	call := Call{Script: shareScript, Keys: append(make([]string, 0, 5), req.Name, fence, turn, queue)}
	var op, config, guardOff, ticket, last string
	if marker != nil {
		call.Keys = append(call.Keys, marker.key)
		config, guardOff = marker.config, off(req.Guard)
	}
	if req.Op == node.OpAcquire && place.wait || req.Op == node.OpOffer {
		ticket = strconv.FormatInt(req.Ticket, 10)
	}
	switch req.Op {
	case node.OpAcquire:
		op = "acquire"
		if req.Barge {
			last = "b"
		}
	case node.OpExtend:
		op, call.Keep = "extend", true
	case node.OpRelease:
		op, last = "release", once(req)
	case node.OpRepair:
		op, last, call.Keep = "repair", until(req), true
	case node.OpOffer:
		op = "offer"
	}
	call.Args = []string{op, req.Value, req.Kind(), slotDigits(req.Slot), milliseconds(req.TTL), token, milliseconds(req.Retention),
		windows.text(req.Window), config, guardOff, place.inbox, ticket, last}
	switch {
	case req.Op == node.OpRelease && req.Keep > 0:
		call.Args = append(call.Args, milliseconds(req.Keep))
	case req.Op == node.OpRepair:
		call.Args = append(call.Args, seen(req))
	}
	return call
}

// seen is when the node answered that it lacks the share, in 16 digits of
// microseconds.
func seen(req node.Request) string {
	if req.Seen.IsZero() {
		return "0000000000000000"
	}
	return fmt.Sprintf("%016d", req.Seen.UnixMicro())
}

// slotDigits returns a slot as two digits.
func slotDigits(slot uint8) string { return string([]byte{'0' + slot/10, '0' + slot%10}) }
