package casnode

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/redlatch/redlatch/internal/nodestate"
	"github.com/redlatch/redlatch/node"
)

// This file has the requests that are about no lock: they have no place in a queue, and
// are executed after a read.

// Mark reads or writes the marker.
func (n *Node) Mark(ctx context.Context, req node.MarkRequest) (reply node.MarkReply, err error) {
	if err := nodestate.CheckMark(req); err != nil {
		return reply, n.unsent(err)
	}
	err = n.update(ctx, node.Request{Op: node.OpMark, Name: MarkerName}, func(s Snapshot) (d decision, err error) {
		marker, lost := s.marker()
		if lost != nil && req.Mark == node.MarkFresh {
			req.Mark = node.MarkWrite // its locks are not known to be gone
		}
		server := nodestate.Server{ID: s.Server, Marker: marker}
		if reply = server.Mark(s.Now, req); s.by != nil {
			reply.TrustedFrom = reply.TrustedFrom.UTC()
		}
		if server.Marker == marker {
			n.noteTrusted(ctx, s, node.OpMark, reply.Status)
			return d, nil
		}
		d.row = &Row{Name: MarkerName}
		d.row.State, d.fresh = s.encodeMarker(&server.Marker)
		return d, nil
	})
	return reply, err
}

// Records reads or writes the records of a name.
func (n *Node) Records(ctx context.Context, req node.RecordsRequest) (reply node.RecordsReply, err error) {
	asked := node.Request{Op: req.Op, Name: req.Name}
	if err := cmp.Or(checkName(req.Name), nodestate.CheckRecords(req)); err != nil {
		return reply, n.unsent(err)
	}
	err = n.update(ctx, asked, func(s Snapshot) (d decision, err error) {
		marker, _ := s.marker()
		entry, err := s.entry()
		if err != nil {
			return d, fmt.Errorf("the row of %q: %w: redlatch break --foreign replaces it", req.Name, err)
		}
		before, server := s.same(&entry), nodestate.Server{ID: s.Server, Marker: marker}
		reply = server.RecordsOf(&entry, s.Now, req)
		if s.by != nil {
			reply.Clockless = true
			reply.Begun, reply.Since, reply.Marked = reply.Begun.UTC(), reply.Since.UTC(), reply.Marked.UTC()
		}
		if n.queue.store != nil {
			d.entry = &entry
		}
		return n.leaves(&s, d, asked, req.Occurrence, &entry, before, false), nil
	})
	return reply, err
}

// update executes such a request: decide says what to write. req has its operation, and
// the name of the row.
func (n *Node) update(ctx context.Context, req node.Request, decide func(s Snapshot) (decision, error)) error {
	if err := ctx.Err(); err != nil {
		return n.unsent(err)
	}
	ctx, end, err := n.turn(ctx, req.Op)
	if err != nil {
		return n.explain(err)
	}
	defer end()
	for t := (tries{}); ; {
		done, next, err := n.updateOnce(ctx, req, t.present, decide)
		if !done {
			err = n.again(ctx, &t, req, next, err)
		}
		if done || err != nil {
			return err
		}
	}
}

func (n *Node) updateOnce(ctx context.Context, req node.Request, s Snapshot, decide func(s Snapshot) (decision, error)) (done bool, present Snapshot, err error) {
	if s.Server == "" {
		if s, err = n.read(ctx, req.Name); err != nil {
			return false, present, n.unsent(err)
		}
		n.cache.read(req.Name, s)
	}
	d, err := decide(s)
	if err != nil {
		return false, present, n.unsent(err)
	}
	if !n.startTimers(ctx, req.Name, d.timers) {
		d = d.plain()
	}
	if d.row == nil {
		return true, s, nil
	}
	if done, present, err = n.swap(ctx, s, req, d, false); done && err == nil && req.Op != node.OpMark {
		n.sweepSometimes(ctx, req.Name, s)
	}
	return done, present, err
}

// tries are those of one request: how often another one wrote first, and what was read
// then.
type tries struct {
	refused int
	present Snapshot
}

// again returns nil if a request is to be tried again, perhaps after a pause, and else
// its error.
func (n *Node) again(ctx context.Context, t *tries, req node.Request, next Snapshot, err error) error {
	if err == nil {
		t.refused++
		if t.present = next; next.Server != "" && t.refused <= mostRetries {
			return nil
		}
		if err = pause(ctx, req, t.refused); err == nil {
			t.present = Snapshot{}
			return nil
		}
		err = n.unsent(err)
	}
	if t.refused > 0 && errors.Is(err, node.ErrUnsent) {
		err = fmt.Errorf("%w: others wrote the row at each of %d tries (%w)", node.ErrContended, t.refused, err)
	}
	return err
}
