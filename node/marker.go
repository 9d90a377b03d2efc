package node

import "time"

// Guard is what a node's marker says: the membership that the node belongs to,
// and its cluster parameters. Clients of one membership agree on all of it.
type Guard struct {
	// Membership is the id of the membership: 16 hexadecimal digits.
	Membership string
	// Nodes is the membership as text.
	Nodes string
	// Generation is the number of the membership: each membership change raises
	// it. It is 0 for a client that has not read it yet.
	Generation uint64
	// MaxTTL is the longest time to live of a lock.
	MaxTTL time.Duration
	// Window is how far a token may differ from a node's clock.
	Window time.Duration
	// Quarantine is how long a node that may have forgotten locks does not
	// grant.
	Quarantine time.Duration
	// Replicas is how many replicas of a node must be online for it to grant
	// and extend; 0 for none. With fewer it answers with an error.
	Replicas int
	// ReplicaLag is how long ago such a replica may have last reported, in
	// whole seconds; 0 if Replicas is 0.
	ReplicaLag time.Duration
	// Off says that the client's guard is off: a node without a marker grants,
	// and of a marker only the membership and MaxTTL are compared.
	Off bool
	// Told says that the node is no member of this membership: it was removed by
	// the change to it, and only reports it.
	Told bool
	// From is the text of the membership of which the node was a member before the
	// last membership change barred it; empty if of none.
	From string
}

// Agrees reports whether both are of the same membership, with the same cluster
// parameters.
func (g *Guard) Agrees(other *Guard) bool {
	a, b := g.Shared(), other.Shared()
	a.Generation, b.Generation = 0, 0
	return a == b
}

// Shared returns what clients of the membership agree on, with the generation:
// without the text, and without what is of one client or one node.
func (g *Guard) Shared() Guard {
	a := *g
	a.Nodes, a.Off, a.Told, a.From = "", false, false, ""
	return a
}

// Barred reports whether this is the marker of a node that a membership change
// has barred. It is false for nil.
func (g *Guard) Barred() bool { return g != nil && g.Membership == BarredMembership }

// BarredMembership is the Membership of a node that a membership change has barred. No
// client's membership has this id, so the node grants to nobody until a
// MarkReplace.
const BarredMembership = "0000000000000000"

// Mark says what an OpMark does.
type Mark uint8

// What an OpMark can do.
const (
	// MarkRead writes nothing.
	MarkRead Mark = iota
	// MarkWrite writes the marker, with a quarantine, if there is none, or if
	// it is from another server, from a clock that was set back since, or from
	// another membership in a lower Generation.
	MarkWrite
	// MarkFresh is like MarkWrite, but trusts the node at once: it cannot have
	// forgotten a lock, because there was none.
	MarkFresh
	// MarkReplace writes the marker over another membership's, or over that of
	// a lower Generation, with a quarantine of TTL at least.
	MarkReplace
	// MarkTell is MarkReplace for a node that is no member of the membership, with
	// Told in its marker.
	MarkTell
	// MarkBar removes the node from its membership: its marker is for
	// BarredMembership, until a MarkReplace, and From that membership. A node that is already marked for the
	// Membership and Generation of the Guard is not changed. Misconfigured, with its marker as it is
	// now.
	MarkBar
	// MarkNote notes the Epochs in the marker, and changes nothing else.
	MarkNote
)
