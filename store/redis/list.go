package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/steptimeout"
	"github.com/redlatch/redlatch/node"
)

const (
	// scanStep is how many keys the server scans in one step: a fraction of a
	// millisecond in which it serves no other request.
	scanStep = 500
	// lookBatch is how many names are read in one step.
	lookBatch = 100
)

var _ node.Lister = (*Node)(nil)

// List scans the server's keys in small steps and calls found for every lock
// that is held, waited for, or was broken. It finds locks by the keys beside them: that
// of a foreign client has none, and is not found.
// In a cluster it scans one master after the other.
func (n *Node) List(ctx context.Context, prefix string, found func(node.Listing)) error {
	routes, err := n.routes(ctx)
	if err != nil {
		return err
	}
	seen := map[string]bool{} // a scan may return a key twice, and each lock has two
	for _, route := range routes {
		for cursor := "0"; ; {
			step, err := n.driver.Eval(ctx, Call{Script: scanScript, Keys: []string{route}, Args: []string{cursor, strconv.Itoa(scanStep)}})
			if err != nil {
				return explain(err)
			}
			steptimeout.Tell(ctx)
			if len(step) == 0 {
				return fmt.Errorf("redlatch: unexpected empty reply to the scan script")
			}
			var names []string
			for _, key := range step[1:] {
				kind, name, ok := nameOf(key)
				if ok && (kind == "fence" || kind == "queue") && strings.HasPrefix(name, prefix) && !seen[name] {
					seen[name] = true
					names = append(names, name)
				}
			}
			if err := n.listNames(ctx, names, found); err != nil {
				return err
			}
			if cursor = step[0]; cursor == "0" {
				break
			}
		}
	}
	return nil
}

// routes returns a key for each master: one for a single server, several for a
// cluster.
func (n *Node) routes(ctx context.Context) ([]string, error) {
	routes := []string{reserved + "identity"}
	if n.driver.Kind() != Cluster {
		return routes, nil
	}
	masters, err := n.driver.Eval(ctx, Call{Script: mastersScript, Keys: routes})
	if err != nil {
		return nil, explain(err)
	}
	routes = nil
	for _, s := range masters {
		slot, err := strconv.Atoi(s)
		if err != nil || slot < 0 || slot >= slots {
			return nil, fmt.Errorf("redlatch: unexpected slot %.20q in the cluster's list of masters", s)
		}
		routes = append(routes, slotMarkerKey(slot))
	}
	return routes, nil
}

// listNames looks names up, and calls found for those that are held, waited for,
// or were broken.
func (n *Node) listNames(ctx context.Context, names []string, found func(node.Listing)) error {
	batch := lookBatch
	if n.driver.Kind() == Cluster {
		batch = 1 // a script can read one slot only
	}
	for len(names) > 0 {
		some := names[:min(batch, len(names))]
		names = names[len(some):]
		r, err := n.driver.Eval(ctx, lookCall(some, 0))
		if err != nil {
			return explain(err)
		}
		all, _, err := parseLook(r, some)
		if err != nil {
			return err
		}
		steptimeout.Tell(ctx)
		for _, l := range all {
			if l.Reply.Status != node.Absent || l.Waiting > 0 || l.Broken != 0 {
				found(l)
			}
		}
	}
	return nil
}

// Look returns the state of one name on the server.
func (n *Node) Look(ctx context.Context, name string) (node.Listing, error) {
	if strings.HasPrefix(name, reserved) {
		return node.Listing{}, &node.ConfigError{Field: "name", Value: name, Bound: "one that does not begin with " + reserved}
	}
	call := lookCall([]string{name}, node.MaxListed)
	call.Keys = append(call.Keys, sideKey("completed", name), sideKey("memory", name))
	call.Args = append(call.Args, strconv.Itoa(node.MaxListed))
	r, err := n.driver.Eval(ctx, call)
	if err != nil {
		return node.Listing{}, explain(err)
	}
	all, rest, err := parseLook(r, []string{name})
	if err != nil {
		return node.Listing{}, err
	}
	l := all[0]
	if err := parseRecords(r, rest, &l); err != nil {
		return node.Listing{}, err
	}
	return l, nil
}

func lookCall(names []string, waiters int) Call {
	call := Call{Script: lookScript, Args: []string{strconv.Itoa(waiters)}}
	for _, name := range names {
		call.Keys = append(call.Keys, name, sideKey("fence", name), sideKey("queue", name), sideKey("group", name), sideKey("broken", name))
	}
	return call
}

// parseRecords reads the records, the rest of a reply.
func parseRecords(r, rest []string, l *node.Listing) error {
	bad := func(what string) error {
		return fmt.Errorf("redlatch: unexpected reply %s to the look script: %s", shown(r), what)
	}
	if len(rest)%2 == 0 || len(rest) > 1+2*node.MaxListed {
		return bad("the number of records is none")
	}
	if rest[0] != "" {
		since, err := strconv.ParseInt(rest[0], 10, 64)
		if err != nil || since <= 0 || since > int64(node.MaxToken) {
			return bad("since when is no time in microseconds")
		}
		l.Since = time.UnixMicro(since)
	}
	for i := len(rest) - 2; i > 0; i -= 2 { // the newest first
		until, err := strconv.ParseFloat(rest[i+1], 64)
		if err != nil || !(until >= 0 && until <= float64(node.MaxToken)/1000) {
			return bad("the end of a record is no time in milliseconds")
		}
		l.Completed = append(l.Completed, node.Record{Occurrence: rest[i], Left: time.UnixMilli(int64(until)).Sub(l.Reply.Now)})
	}
	return nil
}

// parseLook reads the reply of the look script. It returns what follows the
// names.
func parseLook(r, names []string) (all []node.Listing, rest []string, err error) {
	bad := func(what string) ([]node.Listing, []string, error) {
		return nil, nil, fmt.Errorf("redlatch: unexpected reply %s to the look script: %s", shown(r), what)
	}
	if len(r) < 2 {
		return bad("it has no time")
	}
	now, rest := r[:2], r[2:]
	for _, name := range names {
		if len(rest) < 7 {
			return bad("it is too short")
		}
		reply, err := parseReply([]string{rest[0], rest[1], rest[2], rest[3], now[0], now[1]}, node.Share{})
		if err != nil {
			return nil, nil, err
		}
		l := node.Listing{Name: name, Reply: reply}
		l.Broken, _ = node.ParseToken(rest[4])
		if reply.Status == node.Held {
			l.Holders = holdersOf(reply, rest[1])
		}
		waiting, err1 := strconv.Atoi(rest[5])
		named, err2 := strconv.Atoi(rest[6])
		rest = rest[7:]
		if err1 != nil || err2 != nil || waiting < 0 || named < 0 || named > node.MaxListed || len(rest) < 2*named {
			return bad("the number of waiters is none")
		}
		l.Waiting = waiting
		for range named {
			ticket, err := ticketOf(rest[0])
			if err != nil {
				return bad("a ticket is no time in microseconds")
			}
			// The value is followed by the waiter's inbox.
			share, value := cutKind(rest[1][:max(strings.LastIndexByte(rest[1], 0), 0)])
			l.Waiters = append(l.Waiters, node.Waiter{Value: value, Ticket: ticket, Share: share})
			rest = rest[2:]
		}
		all = append(all, l)
	}
	return all, rest, nil
}

// ticketOf reads a ticket, which is a score of a sorted set.
func ticketOf(score string) (int64, error) {
	ticket, err := strconv.ParseFloat(score, 64)
	if err != nil || !(ticket >= 0 && ticket <= float64(node.MaxToken)) { // nor one that is no number
		return 0, fmt.Errorf("%q is no time in microseconds", score)
	}
	return int64(ticket), nil
}
