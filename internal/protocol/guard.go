package protocol

import "github.com/redlatch/redlatch/node"

// This file decides whether a client goes by the nodes' markers at all.

// GuardMode says whether nodes that may have forgotten locks are quarantined. The
// values are those of redlatch.GuardMode.
type GuardMode uint8

// The modes of the guard.
const (
	GuardAuto GuardMode = iota
	GuardOn
	GuardOff
)

// GuardIsOn reports whether the restart guard of a client of these nodes is on. By
// GuardAuto it is if all have a marker, and another server may grant what one has
// forgotten: there are several, or one guards itself alone.
func GuardIsOn(mode GuardMode, nodes []node.Node) bool {
	alone := len(nodes) > 1
	for _, n := range nodes {
		g, ok := n.(node.Guarded)
		if !ok {
			return mode == GuardOn
		}
		alone = alone || g.GuardsAlone()
	}
	return mode == GuardOn || mode == GuardAuto && alone
}
