package redis

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch/node"
)

// markerVersion is the first word of a marker.
const markerVersion = "2"

// A marker is one key on each server, with no expiry: a server without it has
// forgotten that it ever was in service. Its format is in
// lua/lib/markerFormat.lua. During a membership change it is that of a membership
// which no client has.

// markerKey returns the key of the marker that a lock's grant depends on. In a
// cluster each slot has its own, since a script sees one slot alone.
func (n *Node) markerKey(name string) string {
	if n.driver.Kind() == Cluster || n.slotted.Load() {
		return slotMarkerKey(slotOf(name))
	}
	return reserved + "marker"
}

func slotMarkerKey(slot int) string { return reserved + "marker:{" + slotTag(slot) + "}" }

// expectation is how a marker must begin for a common grant: with the version,
// the server's replication id and the config, and a space. Before the first
// grant the id is not known, and so no marker is as expected.
type expectation struct {
	key          string
	guard        *node.Guard
	server       string // empty if it is not known
	config, text string
	info         string // the line of INFO replication with the id; empty if grants are not common
}

// line returns the line of INFO replication that a common grant or extension
// needs; empty if the request is not common, o if the guard is off.
func (e *expectation) line(req node.Request) string {
	switch {
	case req.Guard.Off:
		return "o"
	case req.Op == node.OpExtend && req.TTL > req.Guard.MaxTTL:
		return ""
	}
	return e.info
}

// expect returns what is expected of the marker that a request depends on. It is
// asked for with every grant, and seldom changes.
func (n *Node) expect(req node.Request) *expectation {
	key, server := n.markerKey(req.Name), ""
	if e, ok := n.expected.Load(key); ok {
		known := e.(*expectation)
		if known.guard == req.Guard {
			return known
		}
		server = known.server
	}
	return n.learn(expectation{key: key, guard: req.Guard, config: config(req.Guard)}, server)
}

// learn makes a marker expected to have the replication id of a server.
func (n *Node) learn(e expectation, server string) *expectation {
	const unknown = "----------------------------------------" // as long as an id, and none
	e.server, e.text = server, markerVersion+" "+cmp.Or(server, unknown)+" "+e.config+" "
	e.info = ""
	if server != "" && e.guard.Replicas == 0 && e.guard.ReplicaLag == 0 {
		e.info = "master_replid:" + server
	}
	n.expected.Store(e.key, &e)
	return &e
}

// config returns what clients of one list agree on, as it stands in a marker.
func config(g *node.Guard) string {
	return fmt.Sprintf("%s %d %d %d %d %d", g.List, g.MaxTTL.Milliseconds(), g.Window.Microseconds(), g.Quarantine.Milliseconds(),
		g.Replicas, g.ReplicaLag.Milliseconds())
}

// off tells a script that the client's guard is off.
func off(g *node.Guard) string {
	if g.Off {
		return "o"
	}
	return ""
}

// trustedFrom returns since when a marker has its server trusted.
func trustedFrom(text string) time.Time {
	parts := strings.SplitN(text, " ", 11)
	if len(parts) != 11 {
		return time.Time{}
	}
	us, err := strconv.ParseInt(parts[8], 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMicro(us)
}

// parseMarker reads a marker, and why the server sits or sat out.
func parseMarker(text string) (*node.Guard, string) {
	parts := strings.SplitN(text, " ", 11)
	if len(parts) != 11 || parts[0] != markerVersion {
		return nil, ""
	}
	var numbers [5]int64
	for i := range numbers {
		n, err := strconv.ParseInt(parts[3+i], 10, 64)
		if err != nil || n < 0 || n > int64(1<<62/time.Millisecond) {
			return nil, ""
		}
		numbers[i] = n
	}
	if numbers[3] > math.MaxInt32 {
		return nil, ""
	}
	return &node.Guard{
		List:       parts[2],
		Nodes:      parts[10],
		MaxTTL:     time.Duration(numbers[0]) * time.Millisecond,
		Window:     time.Duration(numbers[1]) * time.Microsecond,
		Quarantine: time.Duration(numbers[2]) * time.Millisecond,
		Replicas:   int(numbers[3]),
		ReplicaLag: time.Duration(numbers[4]) * time.Millisecond,
	}, parts[9]
}

// version is the first word of a marker that cannot be read.
func version(marker string) string {
	v, _, _ := strings.Cut(marker, " ")
	return v[:min(len(v), 8)]
}

var marks = map[node.Mark]string{
	node.MarkRead: "read", node.MarkWrite: "mark", node.MarkFresh: "fresh", node.MarkReplace: "replace",
	node.MarkBar: "bar",
}

// mark carries out an OpMark.
func (n *Node) mark(ctx context.Context, req node.Request) (node.Reply, error) {
	what, ok := marks[req.Mark]
	if !ok || req.Guard == nil {
		return node.Reply{}, fmt.Errorf("%w (%w)", &node.ConfigError{Field: "Mark", Value: req.Mark, Bound: "one of this package's, with a Guard"}, node.ErrUnsent)
	}
	call := Call{Script: markScript, Args: []string{config(req.Guard), req.Guard.Nodes, what, milliseconds(req.TTL), until(req)}}
	if n.driver.Kind() != Cluster || req.Name != "" {
		return n.markOne(ctx, call, n.markerKey(req.Name))
	}
	return n.markSlots(ctx, call)
}

func (n *Node) markOne(ctx context.Context, call Call, key string) (node.Reply, error) {
	call.Keys = []string{key}
	r, err := n.driver.Eval(ctx, call)
	if err != nil {
		return node.Reply{}, explain(err)
	}
	reply, err := parseReply(r, node.Share{})
	if err != nil {
		return reply, err
	}
	reply.Replicas, reply.Rank = reply.Rank, 0 // the last part of this reply
	if guard, reason := parseMarker(r[1]); guard != nil {
		reply.Guard, reply.Value = guard, reason
		if reason != node.ReasonFresh {
			reply.TrustedFrom = trustedFrom(r[1])
		}
	}
	return reply, nil
}

// severity orders the answers of a cluster's slots: the worst speaks for all.
var severity = map[node.Status]int{
	node.Granted: 0, node.Quarantined: 1, node.Absent: 2, node.Misconfigured: 3, node.Stale: 4,
}

// markSlots marks every slot of a cluster.
func (n *Node) markSlots(ctx context.Context, call Call) (node.Reply, error) {
	var (
		mu    sync.Mutex
		worst node.Reply
		used  *node.Guard // what a slot that has been in service is marked with
		first error
		all   sync.WaitGroup
	)
	const workers = 64
	for w := range workers {
		all.Go(func() {
			for slot := w; slot < slots && ctx.Err() == nil; slot += workers {
				reply, err := n.markOne(ctx, call, slotMarkerKey(slot))
				mu.Lock()
				if err != nil && first == nil {
					first = err
				}
				if err == nil && reply.Guard != nil && !(reply.Status == node.Quarantined && reply.Value == node.ReasonNew) {
					used = reply.Guard
				}
				if worst.Status == 0 || severity[reply.Status] > severity[worst.Status] ||
					reply.Status == worst.Status && reply.Left > worst.Left {
					worst = reply
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	all.Wait()
	if first == nil {
		first = ctx.Err()
	}
	if used != nil && worst.Status != node.Misconfigured {
		worst.Guard = used
	}
	return worst, first
}
