package redlatch

// GuardMode says whether nodes that may have forgotten locks are quarantined.
type GuardMode uint8

// The modes of the guard.
const (
	// GuardAuto is GuardOn for several nodes, for a master that Sentinel manages
	// and for a database, if the nodes can be guarded. Otherwise it is GuardOff:
	// during the quarantine of a single plain Redis server no other node could
	// grant locks.
	GuardAuto GuardMode = iota
	// GuardOn writes a marker to every node, and quarantines a node that has
	// lost it.
	GuardOn
	// GuardOff writes no markers and ignores quarantines. A node that restarts
	// without its data can then grant a lock that another client still holds. A
	// marker of another membership is still refused, unless AnyMembership is
	// set.
	GuardOff
)
