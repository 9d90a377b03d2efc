package protocol

import "github.com/redlatch/redlatch/node"

// This file decides whether nodes may be trusted at once, because they are new.
// A node that has lost all data looks like a new one. So any trace of earlier
// use counts against it: a marker, a key, or what the client has seen.

// ShowsService reports whether an answer shows that the nodes are in service: one
// of them has granted, or has named a holder.
func ShowsService(op node.Op, status node.Status) bool {
	switch op {
	case node.OpAcquire:
		return status == node.Granted || status == node.Held
	case node.OpExtend, node.OpRepair:
		return status == node.Granted
	}
	return false
}

// BeenInService reports whether a node's marker shows that the node is, or has
// been, in service. A node whose quarantine began when it was first seen has
// not been in service yet.
func BeenInService(s MarkerState) bool {
	return s.Trusted || s.Guard != nil && !(s.Left > 0 && s.Reason == node.ReasonNew)
}

// PriorUse is what a search of one node for locks from before has found.
type PriorUse struct {
	Searched bool   // the whole node was searched
	Key      string // a key of a lock; empty for none
}

// Freshness says whether nodes are new, and if not, what shows that.
type Freshness uint8

// The kinds of freshness. The first that applies is used.
const (
	// Fresh: no trace of earlier use.
	Fresh Freshness = iota
	// InService: markers show that nodes are, or have been, in service.
	InService
	// SeenInService: the client has seen them in service, so they have lost
	// their data.
	SeenInService
	// Unsearched: a node could not be searched.
	Unsearched
	// HasKeys: a node has a key of a lock.
	HasKeys
)

// FreshByMarkers judges nodes by their markers, and by whether the client has
// seen them in service. It returns how many have been in service.
func FreshByMarkers(nodes []MarkerState, seen bool) (f Freshness, used int) {
	for _, s := range nodes {
		if BeenInService(s) {
			used++
		}
	}
	switch {
	case used > 0:
		return InService, used
	case seen:
		return SeenInService, 0
	}
	return Fresh, 0
}

// FreshByKeys judges nodes by what a search of each has found. It returns the
// first node that is not fresh.
func FreshByKeys(found []PriorUse) (f Freshness, node int) {
	for i, u := range found {
		switch {
		case !u.Searched:
			return Unsearched, i
		case u.Key != "":
			return HasKeys, i
		}
	}
	return Fresh, 0
}
