package redis

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/node"
)

var statuses = map[string]node.Status{
	"granted": node.Granted, "held": node.Held, "foreign": node.Foreign, "absent": node.Absent, "reserved": node.Reserved,
	"stale": node.Stale, "behind": node.Behind, "ahead": node.Ahead, "quarantine": node.Quarantined, "config": node.Misconfigured,
}

// asAsked reads the reply to a request that was granted as it was asked: the
// server's clock, in µs; 0 if a release did not read it.
func asAsked(now string, req *node.Request, marker *expectation) (node.Reply, error) {
	us, err := strconv.ParseInt(now, 10, 64)
	if err != nil || us < 0 || us/1e6 > lastSecond || req.Op != node.OpAcquire && req.Op != node.OpExtend && req.Op != node.OpRelease {
		return node.Reply{}, fmt.Errorf("redlatch: unexpected reply %s", shown([]string{now}))
	}
	reply := node.Reply{Status: node.Granted, Fence: req.Token}
	if us != 0 || req.Op != node.OpRelease {
		reply.Now = time.UnixMicro(us)
	}
	if req.Op == node.OpAcquire && marker != nil && !req.Guard.Off {
		reply.Server, reply.Epoch, reply.Lineage = marker.server, marker.epoch, marker.lineage
	}
	return reply, nil
}

// parseReply reads {status, holder, left ms, fence, now s, now µs, rank, slot,
// free}, the last of which may be missing; or, with a reserve that was confirmed,
// {…, rank, next ticket}. share is what was asked for.
func parseReply(r []string, share node.Share) (node.Reply, error) {
	bad := func(what string) (node.Reply, error) {
		return node.Reply{}, fmt.Errorf("redlatch: unexpected reply %s: %s", shown(r), what)
	}
	if len(r) < 6 || len(r) > 9 {
		return bad("it must have 6 to 9 parts")
	}
	status, ok := statuses[r[0]]
	if !ok {
		return bad("unknown status")
	}
	reply := node.Reply{Status: status}
	switch status {
	case node.Misconfigured:
		if m := parseMarker(r[1]); m != nil {
			reply.Guard = &m.guard
		} else {
			reply.Version = version(r[1])
		}
	case node.Granted:
		reply.NeedsMark = r[1] == "remark"
	case node.Quarantined:
		switch reply.Reason = r[1]; r[1] {
		case "unmarked":
			reply.Reason, reply.NeedsMark = node.ReasonNew, true
		case "remark":
			reply.Reason, reply.NeedsMark = node.ReasonChanged, true
		}
	case node.Foreign:
		reply.Format = r[1]
	default:
		reply.Value = r[1]
	}
	left, err := strconv.ParseInt(r[2], 10, 64)
	if err != nil {
		return bad("time left is no number")
	}
	switch {
	case left == -1, left > int64(1<<62/time.Millisecond): // a century is as good as no expiry
		reply.Left = node.NoExpiry
	case left > 0:
		reply.Left = time.Duration(left) * time.Millisecond
	}
	fence, holder := parseFence(r[3])
	if reply.Fence = fence; status == node.Held {
		reply.HolderToken = holder
	}
	if reply.Now, err = parseTime(r[4], r[5]); err != nil {
		return bad(err.Error())
	}
	if len(r) >= 7 {
		if reply.Rank, err = strconv.Atoi(r[6]); err != nil || reply.Rank < 0 {
			return bad("the rank is no number from 0 on")
		}
	}
	if len(r) == 8 {
		if reply.Confirmed = true; r[7] != "" {
			if reply.Next, err = ticketOf(r[7]); err != nil {
				return bad("the ticket is no number")
			}
		}
	}
	if len(r) == 9 {
		if reply.Free, ok = parseSlots(r[8]); !ok {
			return bad("the free slots are none")
		}
		if status == node.Granted && r[7] != "" { // to an acquire
			slot, err := strconv.ParseUint(r[7], 10, 8)
			reply.Share = share
			if reply.Share.Slot = uint8(slot); err != nil || reply.Share.Check() != nil {
				return bad("the slot is none")
			}
		}
		if status != node.Granted && status != node.Held && status != node.Reserved {
			reply.Free = 0
		}
	}
	if status == node.Held {
		describe(&reply, share)
	}
	return reply, nil
}

// shown returns a reply as an error shows it: no more of it than somebody would
// read.
func shown(r []string) string {
	const parts, letters = 8, 60
	if len(r) > parts {
		return fmt.Sprintf("%.*q and %d parts more", letters, r[:parts], len(r)-parts)
	}
	return fmt.Sprintf("%.*q", letters, r)
}

var errNoTime = errors.New("the time is none from 1970 to 9999")

// lastSecond is the last of the year 9999. Times after it are out of range.
const lastSecond = 253402300799

// parseTime reads what TIME returns: seconds, and microseconds.
func parseTime(sec, usec string) (time.Time, error) {
	s, err1 := strconv.ParseInt(sec, 10, 64)
	us, err2 := strconv.ParseInt(usec, 10, 64)
	if err1 != nil || err2 != nil || s < 0 || s > lastSecond || us < 0 || us >= 1e6 {
		return time.Time{}, errNoTime
	}
	return time.Unix(s, us*1000), nil
}
