package redlatch

// GuardMode says whether nodes that may have forgotten locks sit out.
type GuardMode uint8

// The modes of the guard.
const (
	// GuardAuto is GuardOn for several nodes and for a master that Sentinel
	// manages, where the nodes can be guarded, and GuardOff otherwise: a
	// single plain server has no majority to carry on meanwhile.
	GuardAuto GuardMode = iota
	// GuardOn has every node carry a marker, and sit out after it lost it.
	GuardOn
	// GuardOff writes no markers, and minds no quarantine. A node that restarts
	// without its data can then grant what another still holds. A marker of
	// another list of nodes is refused all the same, unless AnyMembership is
	// set.
	GuardOff
)
