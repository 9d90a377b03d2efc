package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/node"
)

// A Driver is what a Node needs of a client library.
type Driver interface {
	// Eval runs a script on the server that has the keys, by its digest, and
	// by its source where the server does not know it yet. The reply is an
	// array of strings; a number is returned as an array of one string, its
	// digits. A server's error reply is returned as a *ServerError.
	Eval(ctx context.Context, call Call) ([]string, error)

	// Kind says what is behind the driver: one server, Sentinel or a cluster.
	Kind() Kind

	// Close closes what the driver opened.
	Close() error
}

// Call is one run of a script.
type Call struct {
	Script *Script
	Keys   []string
	Args   []string // and Keys: a Starter must not use them after it has called done

	// Keep marks the extension of a lock that is held. A driver with a pool
	// reserves some connections for extensions, so that other requests cannot
	// use up the connections that holders need.
	Keep bool

	// Batch is what the call has in common with others that may be sent with it
	// as one, and Item what it is among them; nil if it is sent alone. The first
	// key is the name, and no two of one batch may have the same.
	Batch *Batch
	Item  string
}

// Node is a node.Node over a Redis server.
type Node struct {
	driver  Driver
	starter Starter // nil if the driver is none
	name    string
	warning atomic.Pointer[string]

	// slotted is set once a server that the driver does not take for a Cluster
	// turned out to be part of one: then each slot has a marker.
	slotted atomic.Bool
	// expected has, for the key of a marker, how that marker began when a
	// grant was last seen: an *expectation.
	expected sync.Map

	// batch is the last Batch that was used.
	batch atomic.Pointer[Batch]

	inbox inbox
	// sentinels is the address, if it is one of Sentinel; else nil.
	sentinels *Address
}

// New returns a node that is called name in errors and logs. The name is part of
// the membership: all clients of the same nodes must use the same name for this
// one, or are refused by guarded nodes.
func New(driver Driver, name string) *Node {
	n := &Node{driver: driver, name: name}
	n.starter, _ = driver.(Starter)
	n.inbox.init(driver)
	return n
}

// String returns the node's name.
func (n *Node) String() string { return n.name }

// Close closes what the driver opened.
func (n *Node) Close() error {
	n.inbox.close()
	return n.driver.Close()
}

// GuardsAlone reports whether the address can lead to another server that lacks
// the last writes.
func (n *Node) GuardsAlone() bool { return n.driver.Kind() == Sentinel }

// CountsReplicas marks a node that can require replicas.
func (n *Node) CountsReplicas() {}

// Identity returns the server's run id, and checks whether the server is fit to
// keep locks.
func (n *Node) Identity(ctx context.Context) (string, time.Time, error) {
	reply, err := n.driver.Eval(ctx, Call{Script: identityScript, Keys: []string{reserved + "identity"}})
	if err != nil {
		return "", time.Time{}, explain(err)
	}
	if len(reply) != 5 {
		return "", time.Time{}, fmt.Errorf("redlatch: unexpected reply %s to the identity script", shown(reply))
	}
	if policy := reply[2]; reply[1] != "0" && policy != "" && policy != "noeviction" {
		n.warning.Store(new("the server may evict keys (maxmemory-policy " + policy +
			"), and with them locks: set maxmemory-policy noeviction"))
	}
	now, err := parseTime(reply[3], reply[4])
	if err != nil {
		return "", time.Time{}, fmt.Errorf("redlatch: unexpected reply %s to the identity script: %w", shown(reply), err)
	}
	return reply[0], now, nil
}

// Warnings returns the dangers for locks that Identity found.
func (n *Node) Warnings() []string {
	if w := n.warning.Load(); w != nil {
		return []string{*w}
	}
	return nil
}

// Do executes one request.
func (n *Node) Do(ctx context.Context, req node.Request) (node.Reply, error) {
	if err := ctx.Err(); err != nil {
		return node.Reply{}, fmt.Errorf("%w (%w)", err, node.ErrUnsent)
	}
	switch req.Op {
	case node.OpMark:
		return n.mark(ctx, req)
	case node.OpComplete, node.OpCheck, node.OpRecords, node.OpAdopt:
		return n.records(ctx, req)
	}
	r := run{node: n, req: req, place: n.inbox.place(&req)}
	call, err := r.prepare()
	if err != nil {
		return node.Reply{}, err
	}
	parts, err := n.driver.Eval(ctx, call)
	reply, again, err := r.finish(parts, err)
	if again {
		return n.Do(ctx, req)
	}
	return reply, err
}

// needsMarker are the operations that depend on the marker.
var needsMarker = map[node.Op]bool{node.OpAcquire: true, node.OpRepair: true, node.OpExtend: true, node.OpBreak: true}

// maxTexts is how many keys and arguments a request has at most.
const maxTexts = 17

// call turns the request into the run of a script.
func (r *run) call() (Call, error) {
	req, place, marker := &r.req, r.place, r.marker
	if err := req.Share.Check(); err != nil {
		return Call{}, err
	}
	if strings.HasPrefix(req.Name, reserved) {
		return Call{}, &node.ConfigError{Field: "name", Value: req.Name, Bound: "one that does not begin with " + reserved}
	}
	declared := r.declares()
	own := textsOf(req, declared)
	token := own.token
	ttl, retention, window, share := ttls.text(req.TTL), retentions.text(req.Retention), windows.text(req.Window), shareText(req.Share)
	texts := append(r.texts[:0], req.Name) // the keys, and then the arguments
	if declared {
		texts = append(texts, own.fence, own.turn, own.queue, own.group)
		if req.Op == node.OpAcquire || req.Op == node.OpRepair || req.NoRepair > 0 || marker != nil {
			texts = append(texts, own.ended)
		}
	}
	var expected, line string
	if marker != nil {
		texts = append(texts, marker.key)
		expected, line = marker.text, marker.line(req)
	}
	var call Call
	defaults := &noDefaults
	keys := len(texts)
	switch req.Op {
	case node.OpAcquire:
		call.Script = acquireScript
		ticket, inbox := "", ""
		if place.wait {
			ticket, inbox = own.ticket, place.inbox
		}
		texts = append(texts, req.Value, token, expected, line, ticket, inbox, ttl, retention, window, share)
		defaults = &acquireDefaults
	case node.OpExtend:
		call.Script, call.Keep = extendScript, true
		last := ""
		if req.Reserve > 0 {
			last = (req.Token + req.Reserve).String()
		} else {
			window = ""
		}
		texts = append(texts, req.Value, token, expected, line, ttl, retention, share, last, window)
		defaults = &extendDefaults
	case node.OpRelease:
		call.Script = releaseScript
		texts = append(texts, req.Value, token, place.inbox, retention, window, flag(req.Once), msOrNone(req.Keep), msOrNone(req.NoRepair), share)
		defaults = &releaseDefaults
	case node.OpRepair:
		call.Script, call.Keep = repairScript, true
		texts = append(texts, req.Value, token, retention, until(req), ttl, place.inbox, share, expected, line)
	case node.OpYield:
		call.Script = yieldScript
		texts = append(texts, req.Value, token, retention, window, own.ticket, place.inbox, share)
	case node.OpInspect:
		call.Script = inspectScript
	case node.OpBreak:
		call.Script = breakScript
		list := ""
		if marker != nil {
			list = req.Guard.Membership
		}
		texts = append(texts, token, retention, window, flag(req.Foreign), list)
	default:
		return Call{}, &node.ConfigError{Field: "Op", Value: uint8(req.Op), Bound: "one of this package's operations"}
	}
	// Arguments at the end that the script has by itself are left out.
	for last := len(texts) - 1; last >= keys && texts[last] == defaults[last-keys]; last-- {
		texts = texts[:last]
	}
	call.Keys, call.Args = texts[:keys:keys], texts[keys:]
	if !declared {
		r.batch(&call, own.item, line)
	}
	return call, nil
}

// What the scripts take for an argument that is absent: the defaults of a client,
// in milliseconds and microseconds.
const (
	defaultTTL       = "10000"
	defaultRetention = "3600000"
	defaultWindow    = "10000000"
)

var (
	noDefaults      [10]string
	acquireDefaults = [10]string{6: defaultTTL, 7: defaultRetention, 8: defaultWindow}
	extendDefaults  = [10]string{4: defaultTTL, 5: defaultRetention}
	releaseDefaults = [10]string{3: defaultRetention, 4: defaultWindow}
)

// declares reports whether the script must be sent all keys. On a server that is
// no part of a Cluster, the scripts of common requests add those beside a plain
// name themselves.
func (r *run) declares() bool {
	switch r.req.Op {
	case node.OpAcquire, node.OpExtend, node.OpRelease:
		return r.slotted || r.node.driver.Kind() == Cluster || strings.ContainsAny(r.req.Name, "{}")
	}
	return true
}

// flag returns 1 for true.
func flag(set bool) string {
	if set {
		return "1"
	}
	return ""
}

// msOrNone returns a duration in milliseconds; empty for none.
func msOrNone(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	return milliseconds(d)
}

// until is the moment after which a request is too late, in microseconds.
func until(req *node.Request) string {
	if req.Until.IsZero() {
		return strconv.FormatInt(int64(node.MaxToken), 10)
	}
	return strconv.FormatInt(req.Until.UnixMicro(), 10)
}

var statuses = map[string]node.Status{
	"granted":  node.Granted,
	"held":     node.Held,
	"foreign":  node.Foreign,
	"absent":   node.Absent,
	"reserved": node.Reserved,
	"stale":    node.Stale,
	"behind":   node.Behind,
	"ahead":    node.Ahead,

	"quarantine": node.Quarantined,
	"config":     node.Misconfigured,
}

// asAsked reads the reply to a request that was granted as it was asked: the
// server's clock, in µs.
func asAsked(now string, req *node.Request, marker *expectation) (node.Reply, error) {
	us, err := strconv.ParseInt(now, 10, 64)
	if err != nil || us < 0 || us/1e6 > lastSecond || req.Op != node.OpAcquire && req.Op != node.OpExtend && req.Op != node.OpRelease {
		return node.Reply{}, fmt.Errorf("redlatch: unexpected reply %s", shown([]string{now}))
	}
	reply := node.Reply{Status: node.Granted, Fence: req.Token, Now: time.UnixMicro(us)}
	if req.Op == node.OpAcquire && marker != nil && !req.Guard.Off {
		reply.Server, reply.Epoch = marker.server, marker.epoch
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
	reply := node.Reply{Status: status, Value: r[1]}
	switch status {
	case node.Misconfigured:
		reply.Value = ""
		if m := parseMarker(r[1]); m != nil {
			reply.Guard = &m.guard
		} else {
			reply.Value = version(r[1])
		}
	case node.Granted:
		if reply.Value != node.ReasonRemark {
			reply.Value = ""
		}
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
