package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch/node"
)

// remember executes an OpRemember or OpRecall.
func (n *Node) remember(ctx context.Context, req node.Request) (node.Reply, error) {
	unsent := func(field, value, bound string) (node.Reply, error) {
		return node.Reply{}, fmt.Errorf("%w (%w)", &node.ConfigError{Field: field, Value: value, Bound: bound}, node.ErrUnsent)
	}
	switch {
	case strings.HasPrefix(req.Name, reserved):
		return unsent("name", req.Name, "one that does not begin with "+reserved)
	case req.Occurrence == "" || len(req.Occurrence) > node.MaxOccurrence:
		return unsent("Occurrence", req.Occurrence, fmt.Sprintf("of 1 to %d bytes", node.MaxOccurrence))
	}
	call := Call{
		Script: rememberScript,
		Keys:   []string{sideKey("marks", req.Name), sideKey("since", req.Name)},
		Args:   []string{req.Occurrence, milliseconds(req.Retention)},
	}
	if req.Op == node.OpRemember {
		call.Args = append(call.Args, "1")
	}
	r, err := n.driver.Eval(ctx, call)
	if err != nil {
		return node.Reply{}, explain(err)
	}
	reply, err := parseReply(r, node.Share{})
	if err != nil {
		return node.Reply{}, err
	}
	since, err := strconv.ParseInt(r[1], 10, 64)
	if err != nil || since <= 0 || since > int64(node.MaxToken) {
		return node.Reply{}, fmt.Errorf("redlatch: unexpected reply %s: since when is no time in microseconds", shown(r))
	}
	reply.Value, reply.Server, reply.Since = "", "", time.UnixMicro(since)
	return reply, nil
}
