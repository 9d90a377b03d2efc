package redis

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch/node"
)

// markerVersion is the first word of a marker.
const markerVersion = "3"

// A marker is one key on each server, with no expiry: a server without it has
// forgotten that it ever was in service. Its format is in
// lua/lib/markerFormat.lua. During a membership change it is that of a membership
// which no client has.

// markerKey returns the key of the marker that a lock's grant depends on. In a
// cluster each slot has its own, since a script sees one slot alone.
func (n *Node) markerKey(name string) string {
	if n.ManyMarkers() {
		return slotMarkerKey(slotOf(name))
	}
	return reserved + "marker"
}

// ManyMarkers reports whether each slot has a marker.
func (n *Node) ManyMarkers() bool { return n.driver.Kind() == Cluster || n.slotted.Load() }

func slotMarkerKey(slot int) string { return reserved + "marker:{" + slotTag(slot) + "}" }

// origin is what is known of the server behind a marker.
type origin struct {
	server  string // its replication id; empty if it is not known
	epoch   uint64 // the highest that is known
	lineage string
}

// cutOrigin reads what a grant says of its server; see origin in
// lua/lib/marker.lua.
func cutOrigin(text string) (o origin, epochs node.Epochs, ok bool) {
	parts := strings.Split(text, " ")
	if len(parts) != 4 {
		return o, "", false
	}
	epoch, err := strconv.ParseUint(parts[1], 10, 53)
	return origin{parts[0], epoch, parts[2]}, epochsIn(parts[3]), err == nil
}

// own removes the epochs of a marker if each slot has one: they are those of a slot,
// and not of the node.
func (n *Node) own(m *node.Marker) {
	if n.ManyMarkers() {
		m.Epoch, m.Lineage, m.Epochs = 0, "", ""
	}
}

func epochsIn(text string) node.Epochs {
	if text == "-" {
		return ""
	}
	return node.Epochs(text)
}

// expectation is how a marker must begin for a common grant: with the version,
// the server's replication id, epoch and config, and a space. Before the first
// grant the id is not known, and so no marker is as expected.
type expectation struct {
	origin
	key          string
	guard        *node.Guard
	config, text string
	info         string // the line of INFO replication with the id; empty if grants are not common
}

// line returns the line of INFO replication that a common grant or extension
// needs; empty if the request is not common, o if the guard is off.
func (e *expectation) line(req *node.Request) string {
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
func (n *Node) expect(req *node.Request) *expectation {
	key := n.markerKey(req.Name)
	var o origin
	if e, ok := n.expected.Load(key); ok {
		known := e.(*expectation)
		if known.guard == req.Guard && known.epoch >= req.Epoch {
			return known
		}
		o = known.origin
	}
	if req.Epoch > o.epoch {
		o = origin{epoch: req.Epoch} // whose lineage is not known
	}
	return n.learn(expectation{key: key, guard: req.Guard, config: config(req.Guard)}, o)
}

// learn makes a marker expected to be that of a server.
func (n *Node) learn(e expectation, o origin) *expectation {
	const unknown = "----------------------------------------" // as long as an id, and none
	e.origin = o
	e.text = fmt.Sprintf("%s %s %08d %s ", markerVersion, cmp.Or(o.server, unknown), o.epoch, e.config)
	e.info = ""
	if o.server != "" && e.guard.Replicas == 0 && e.guard.ReplicaLag == 0 {
		e.info = "master_replid:" + o.server
	}
	n.expected.Store(e.key, &e)
	return &e
}

// config returns what clients of one list agree on, as it stands in a marker.
func config(g *node.Guard) string {
	return fmt.Sprintf("%s %d %d %d %d %d", g.Membership, g.MaxTTL.Milliseconds(), g.Window.Microseconds(), g.Quarantine.Milliseconds(),
		g.Replicas, g.ReplicaLag.Milliseconds())
}

// marker is what a server's marker says.
type marker struct {
	guard       node.Guard
	trustedFrom time.Time
	reason      string // why the server is or was quarantined
	epoch       uint64
	lineage     string
	epochs      node.Epochs
}

// parseMarker reads a marker. It returns nil for a text that is none.
func parseMarker(text string) *marker {
	parts := strings.SplitN(text, " ", 18)
	if len(parts) != 18 || parts[0] != markerVersion {
		return nil
	}
	var numbers [12]int64 // by the number of the part
	for _, i := range []int{2, 4, 5, 6, 7, 8, 9, 11} {
		n, err := strconv.ParseInt(parts[i], 10, 64)
		if err != nil || n < 0 || i != 9 && n > int64(1<<62/time.Millisecond) {
			return nil
		}
		numbers[i] = n
	}
	if numbers[7] > math.MaxInt32 {
		return nil
	}
	return &marker{
		guard: node.Guard{
			Membership: parts[3],
			Nodes:      parts[17],
			Generation: uint64(numbers[11]),
			MaxTTL:     time.Duration(numbers[4]) * time.Millisecond,
			Window:     time.Duration(numbers[5]) * time.Microsecond,
			Quarantine: time.Duration(numbers[6]) * time.Millisecond,
			Replicas:   int(numbers[7]),
			ReplicaLag: time.Duration(numbers[8]) * time.Millisecond,
			Told:       parts[14] == "told",
			From:       strings.ReplaceAll(strings.TrimPrefix(parts[15], "-"), "\t", " "),
		},
		trustedFrom: time.UnixMicro(numbers[9]), reason: parts[10], epoch: uint64(numbers[2]), lineage: parts[12], epochs: epochsIn(parts[13]),
	}
}

// version is the first word of a marker that cannot be read.
func version(marker string) string {
	v, _, _ := strings.Cut(marker, " ")
	return v[:min(len(v), 8)]
}

var marks = map[node.Mark]string{
	node.MarkRead: "read", node.MarkWrite: "mark", node.MarkFresh: "fresh", node.MarkReplace: "replace",
	node.MarkBar: "bar", node.MarkNote: "note",
}

// Mark reads or writes the marker.
func (n *Node) Mark(ctx context.Context, req node.MarkRequest) (node.MarkReply, error) {
	if err := ctx.Err(); err != nil {
		return node.MarkReply{}, fmt.Errorf("%w (%w)", err, node.ErrUnsent)
	}
	what, ok := marks[req.Mark]
	if !ok || req.Guard == nil {
		return node.MarkReply{}, fmt.Errorf("%w (%w)", &node.ConfigError{Field: "Mark", Value: req.Mark, Bound: "one of this package's, with a Guard"}, node.ErrUnsent)
	}
	if req.Mark == node.MarkReplace && req.Guard.Told {
		what = "tell"
	}
	call := Call{Script: markScript, Args: []string{config(req.Guard), req.Guard.Nodes, what, milliseconds(req.Least), until(req.Until),
		strconv.FormatUint(req.Guard.Generation, 10), "", cmp.Or(string(req.Epochs), "-"), req.Lineage}}
	if n.driver.Kind() != Cluster || req.Name != "" {
		return n.markOne(ctx, call, n.markerKey(req.Name), req.Epoch)
	}
	return n.markSlots(ctx, call, req.Epoch)
}

// markOne runs the script for one marker, of which at least this epoch is known.
func (n *Node) markOne(ctx context.Context, call Call, key string, epoch uint64) (node.MarkReply, error) {
	if e, ok := n.expected.Load(key); ok {
		epoch = max(epoch, e.(*expectation).epoch)
	}
	call.Keys, call.Args = []string{key}, slices.Clone(call.Args)
	call.Args[6] = strconv.FormatUint(epoch, 10)
	r, err := n.driver.Eval(ctx, call)
	if err != nil {
		return node.MarkReply{}, explain(err)
	}
	said, err := parseReply(r, node.Share{})
	if _, marks := severity[said.Status]; err == nil && !marks {
		err = fmt.Errorf("redlatch: unexpected reply %s to the mark script", shown(r))
	}
	if err != nil {
		return node.MarkReply{}, err
	}
	reply := node.MarkReply{Status: said.Status, Left: said.Left, Now: said.Now, Replicas: said.Rank} // the last part of this reply
	if m := parseMarker(r[1]); m != nil {
		reply.Marker = node.Marker{Guard: &m.guard, Reason: m.reason, Epoch: m.epoch, Lineage: m.lineage, Epochs: m.epochs}
		if m.reason != node.ReasonFresh {
			reply.TrustedFrom = m.trustedFrom
		}
	} else if said.Status == node.Misconfigured {
		reply.Version = said.Version
	}
	n.own(&reply.Marker)
	return reply, nil
}

// severity orders the answers of a cluster's slots: the worst speaks for all.
var severity = map[node.Status]int{
	node.Granted: 0, node.Quarantined: 1, node.Absent: 2, node.Misconfigured: 3, node.Stale: 4,
}

// markSlots marks every slot of a cluster.
func (n *Node) markSlots(ctx context.Context, call Call, epoch uint64) (node.MarkReply, error) {
	var (
		mu    sync.Mutex
		worst node.MarkReply
		used  *node.Guard // what a slot that has been in service is marked with
		first error
		all   sync.WaitGroup
	)
	const workers = 64
	for w := range workers {
		all.Go(func() {
			for slot := w; slot < slots && ctx.Err() == nil; slot += workers {
				reply, err := n.markOne(ctx, call, slotMarkerKey(slot), epoch)
				mu.Lock()
				if err != nil && first == nil {
					first = err
				}
				if err == nil && reply.Guard != nil && !(reply.Status == node.Quarantined && reply.Reason == node.ReasonNew) {
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
	first = cmp.Or(first, ctx.Err())
	if used != nil && worst.Status != node.Misconfigured {
		worst.Guard = used
	}
	return worst, first
}
