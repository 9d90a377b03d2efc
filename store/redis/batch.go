package redis

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

// BatchScript runs several calls of one Batch. Its keys are the locks and
// Batch.Keys. Its arguments are Batch.Args, and then for each call its Item and its
// first two arguments. It replies with a list of what each call would be replied, in
// order; an error is a list of ! and its text. lua/batch.lua has the rules.
var BatchScript = load("batch")

// Batch is what calls must have in common to be sent as one.
type Batch struct {
	Keys, Args []string

	of batched
}

// batched is what a Batch was made of.
type batched struct {
	marker                 *expectation
	line, inbox            string
	ttl, retention, window time.Duration
}

// batch makes the call one that can be sent together with others, if it is a common
// one. The whole request must follow from its Item, name, value and token, and the
// Batch. The script makes the names of the keys beside a lock, so this is never for
// a Cluster.
func (r *run) batch(call *Call, ticket, line string) {
	req := &r.req
	if req.Share.Mode != node.Exclusive {
		return
	}
	switch {
	case req.Op == node.OpAcquire && r.place.wait:
		call.Item = ticket
	case req.Op == node.OpAcquire:
		call.Item = "a"
	case req.Op == node.OpExtend && req.Reserve == 0:
		call.Item = "e"
	case req.Op == node.OpRelease && !req.Once && req.Keep <= 0 && req.NoRepair <= 0:
		call.Item = "r"
	default:
		return
	}
	of := batched{marker: r.marker, line: line, inbox: r.place.inbox, ttl: req.TTL, retention: req.Retention, window: req.Window}
	last := r.node.batch.Load()
	if req.Op == node.OpRelease && last != nil {
		// Neither matters to a release.
		of.marker, of.line, of.ttl = last.of.marker, last.of.line, last.of.ttl
	}
	if last == nil || last.of != of {
		expected := ""
		last = &Batch{of: of}
		if of.marker != nil {
			last.Keys, expected = []string{of.marker.key}, of.marker.text
		}
		last.Args = []string{expected, line, of.inbox, ttls.text(of.ttl), retentions.text(of.retention), windows.text(of.window)}
		r.node.batch.Store(last)
	}
	call.Batch = last
}
