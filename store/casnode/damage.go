package casnode

import (
	"errors"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/internal/nodestate"
	"github.com/redlatch/redlatch/node"
)

// This file is about what is stored and cannot be read: a disk, a dump or a
// careless statement has changed it, or a newer release wrote it. Replacing it
// forgets what it said, so nothing is granted until that must have expired.
//
// A damaged row is reported as a foreign format, which nobody can acquire, extend
// or release. A break of foreign formats replaces it by one that keeps its name
// for a whole quarantine.
//
// A damaged marker refuses what a marker is compared for. Marking the node writes
// it anew, like one that was lost.

// damagedRow is how the format of a damaged row is called.
const damagedRow = "damaged row"

var (
	errEmpty = errors.New("the stored state is empty: it is damaged")
	errStamp = errors.New("the stored state has a time that cannot be: it is damaged")
)

// entry returns what a row says about its name.
func (r *Row) entry() (nodestate.Entry, error) {
	if r.Version != "" && len(r.State) == 0 {
		return nodestate.Entry{}, errEmpty // it must not pass for a name that was never used
	}
	late, state := unstamp(r.State)
	e, err := nodestate.DecodeEntry(state)
	if late > Span {
		err = errStamp
	}
	e.Move(late)
	return e, err
}

// marker returns the marker of a row.
func (r *Row) marker() (nodestate.Marker, error) {
	if r.Version != "" && len(r.State) == 0 {
		return nodestate.Marker{}, errEmpty
	}
	return nodestate.DecodeMarker(r.State)
}

// foreign is the reply to a request for the name of a damaged row.
func foreign(now time.Time) node.Reply {
	return node.Reply{Status: node.Foreign, Taken: node.Taken{Format: damagedRow}, Left: node.NoExpiry, Now: now}
}

func damagedListing(name string, now time.Time) node.Listing {
	return node.Listing{Name: name, Reply: foreign(now)}
}

// replace fills the entry of a name whose row was damaged, and is broken now. It keeps
// everybody out until all who may have held the name have lost it.
func replace(e *nodestate.Entry, s *nodestate.Server, req node.Request, now time.Time) {
	quarantine := s.Marker.Guard.Quarantine
	if req.Guard != nil {
		quarantine = max(quarantine, req.Guard.Quarantine)
	}
	if quarantine == 0 { // there is no guard: nobody knows the longest TTL
		quarantine = req.Retention
	}
	e.Holders = nodestate.Holders{{Value: "a " + damagedRow + " was replaced", Until: now.Add(quarantine)}}
}

// markerDamage returns the error for a request that needs a marker, which is
// damaged.
func markerDamage(req node.Request, err error) error {
	switch req.Op {
	case node.OpAcquire, node.OpExtend, node.OpRepair, node.OpBreak:
		if req.Guard != nil {
			return fmt.Errorf("the marker: %w: redlatch init writes it anew, with a quarantine", err)
		}
	}
	return nil
}
