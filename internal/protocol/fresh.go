package protocol

import "github.com/redlatch/redlatch/node"

// This file decides whether nodes may be trusted at once, because they are new.
// A node that has lost all data looks like a new one. So any trace of earlier
// use counts against it: a marker, a key, or what the client has seen.

// Declaration is what becomes of the declaration that all nodes are new.
type Declaration uint8

// What becomes of it.
const (
	// NothingToDeclare: a node did not answer, or all are trusted already.
	NothingToDeclare Declaration = iota
	// UsedBefore: nodes are, or have been, in service.
	UsedBefore
	// HaveLostData: the client has seen them in service.
	HaveLostData
	// NewUnlessKeys: they are new, unless a search finds a key on one of them. All of
	// them are marked then.
	NewUnlessKeys
)

// Declare decides about the declaration that all nodes are new. served says that the
// client has seen them in service, and used is how many are, or have been, in service.
func Declare(nodes []Seen, served bool) (d Declaration, used int) {
	used = count(nodes, func(s Seen) bool { return s.Used })
	switch {
	case count(nodes, func(s Seen) bool { return s.Answered }) < len(nodes), count(nodes, func(s Seen) bool { return s.Trusted }) == len(nodes):
		return NothingToDeclare, used
	case used > 0:
		return UsedBefore, used
	case served:
		return HaveLostData, used
	}
	return NewUnlessKeys, used
}

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
// been, in service. That of a node which had none, and is in the quarantine that began
// then, does not show it: the node may be new, or have lost all its data.
func BeenInService(s MarkerState) bool {
	return s.Trusted || s.Marked != nil && !(s.Left > 0 && s.Reason == node.ReasonNew)
}
