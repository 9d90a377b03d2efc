package redis

import (
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch/node"
)

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
		if req.Op == node.OpBreak {
			texts = append(texts, sideKey("broken", req.Name))
		} else if req.Op == node.OpAcquire || req.Op == node.OpRepair || req.NoRepair > 0 || marker != nil {
			texts = append(texts, own.ended)
		}
		if req.Op == node.OpRepair {
			texts = append(texts, sideKey("broken", req.Name))
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
		texts = append(texts, req.Value, token, retention, until(req.Until), ttl, place.inbox, share, expected, line)
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

// Replaces reports whether both calls are releases of one name and value, and this one
// does all that the earlier one would: its answer is that of both.
func (c *Call) Replaces(earlier *Call) bool {
	if c.Script != releaseScript || earlier.Script != releaseScript || c.Keys[0] != earlier.Keys[0] {
		return false
	}
	for i := range releaseDefaults {
		a, b := releaseDefaults[i], releaseDefaults[i]
		if i < len(c.Args) {
			a = c.Args[i]
		}
		if i < len(earlier.Args) {
			b = earlier.Args[i]
		}
		// A higher token ends what a lower one does, and a NoRepair adds to none.
		if a != b && !(i == 1 && a > b) && !(i == 7 && b == "") {
			return false
		}
	}
	return true
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
func until(t time.Time) string {
	if t.IsZero() {
		return strconv.FormatInt(int64(node.MaxToken), 10)
	}
	return strconv.FormatInt(t.UnixMicro(), 10)
}
