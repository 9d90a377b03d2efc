package redis

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch/node"
)

// Records reads or writes the records of a name.
func (n *Node) Records(ctx context.Context, req node.RecordsRequest) (node.RecordsReply, error) {
	call, err := recordsCall(req)
	if err = cmp.Or(ctx.Err(), err); err != nil {
		return node.RecordsReply{}, fmt.Errorf("%w (%w)", err, node.ErrUnsent)
	}
	if req.Guard != nil && !req.Guard.Off {
		call.Keys = append(call.Keys, n.markerKey(req.Name))
		call.Args[2] = req.Guard.Membership
	}
	r, err := n.driver.Eval(ctx, call)
	if err != nil {
		return node.RecordsReply{}, explain(err)
	}
	return parseMemory(r)
}

// recordsCall returns the run of the script, for a client with the guard off.
func recordsCall(req node.RecordsRequest) (Call, error) {
	if strings.HasPrefix(req.Name, reserved) {
		return Call{}, &node.ConfigError{Field: "name", Value: req.Name, Bound: "one that does not begin with " + reserved}
	}
	call := Call{Script: recordsScript, Keys: []string{sideKey("completed", req.Name), sideKey("memory", req.Name)}}
	args := func(what string, more ...string) {
		call.Args = append([]string{what, milliseconds(req.Retention), ""}, more...)
	}
	switch {
	case req.Op == node.OpRecords && req.Skip >= 0:
		args("records", strconv.Itoa(req.Skip), strconv.Itoa(node.MaxRecords))
	case req.Op == node.OpAdopt && len(req.Records) <= node.MaxRecords:
		whole, since := "0", req.Begun
		if req.Whole {
			whole, since = "1", req.Since
		}
		args("adopt", stamp(req.Begun), whole, stamp(since))
		for _, x := range req.Records {
			call.Args = append(call.Args, x.Occurrence, milliseconds(x.Left))
		}
	case req.Op == node.OpRecords || req.Op >= node.OpAdopt || req.Op < node.OpComplete:
		return Call{}, &node.ConfigError{Field: "Records", Value: req.Op, Bound: fmt.Sprintf("up to %d records", node.MaxRecords)}
	case req.Occurrence == "" || len(req.Occurrence) > node.MaxOccurrence:
		return Call{}, &node.ConfigError{Field: "Occurrence", Value: req.Occurrence, Bound: fmt.Sprintf("of 1 to %d bytes", node.MaxOccurrence)}
	case req.Op == node.OpComplete:
		args("complete", req.Occurrence)
	default:
		args("check", req.Occurrence)
	}
	return call, nil
}

// stamp is a time as records.lua stores it.
func stamp(t time.Time) string { return fmt.Sprintf("%016d", max(t.UnixMicro(), 0)) }

// parseMemory reads the reply of the records script.
func parseMemory(r []string) (m node.RecordsReply, err error) {
	bad := func(what string) (node.RecordsReply, error) {
		return node.RecordsReply{}, fmt.Errorf("redlatch: unexpected reply %s: %s", shown(r), what)
	}
	if len(r) < 12 || len(r)%2 != 0 {
		return bad("it must have 12 parts, and two for each record")
	}
	reply, err := parseReply(r[:6], node.Share{})
	if err != nil {
		return m, err
	}
	m.Status, m.Now, m.Whole, m.New = reply.Status, reply.Now, r[8] == "1", r[10] == "1"
	for _, x := range []struct {
		text string
		at   *time.Time
	}{{r[1], &m.Since}, {r[6], &m.Begun}, {r[9], &m.Marked}} {
		if x.text == "" && x.at == &m.Marked {
			continue
		}
		us, err := strconv.ParseInt(x.text, 10, 64)
		if err != nil || us <= 0 || us > int64(node.MaxToken) {
			return bad("since when is no time in microseconds")
		}
		*x.at = time.UnixMicro(us)
	}
	retention, err := strconv.ParseInt(r[7], 10, 64)
	if err != nil || retention < 0 || retention > int64(1<<62/time.Millisecond) {
		return bad("the retention is no time in milliseconds")
	}
	m.Retention = time.Duration(retention) * time.Millisecond
	if m.Count, err = strconv.Atoi(r[11]); err != nil || m.Count < 0 {
		return bad("the number of records is none")
	}
	for i := 12; i < len(r); i += 2 {
		left, err := strconv.ParseInt(r[i+1], 10, 64)
		if err != nil || left < 0 || left > int64(1<<62/time.Millisecond) {
			return bad("the end of a record is no time in milliseconds")
		}
		m.Records = append(m.Records, node.Record{Occurrence: r[i], Left: time.Duration(left) * time.Millisecond})
	}
	return m, nil
}
