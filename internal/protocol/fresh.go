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
// been, in service. That of a node which had none, and is in the quarantine that began
// then, does not show it: the node may be new, or have lost all its data.
func BeenInService(s MarkerState) bool {
	return s.Trusted || s.Marked != nil && !(s.Left > 0 && s.Reason == node.ReasonNew)
}
