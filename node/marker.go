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

// A MarkRequest is what a client asks about the marker of a Guarded node.
type MarkRequest struct {
	Mark Mark
	// Name is a lock whose marker is meant, on a node with several; empty for all
	// markers.
	Name string
	// Guard is what the marker is compared with, and what it says when it is written.
	Guard *Guard
	// Least is the shortest quarantine, if the membership is changed.
	Least time.Duration
	// Until is the time, on the node's own clock, after which the request is too late,
	// and Stale: its sender may have decided on another membership since. Zero for no
	// limit.
	Until time.Time
	// Epoch is as in a Request. A marker is written with a higher one.
	Epoch uint64
	// Lineage is that of a marker that is written; see Epochs. If it is empty, the
	// marker keeps its own.
	Lineage string
	// Epochs is what the client knows of all nodes, for a marker that is written. It is
	// merged with what a marker of this membership and Generation notes, and takes the
	// place of what another one does.
	Epochs Epochs
}

// A MarkReply is the answer to a MarkRequest. Its Status is Granted if the marker is
// valid and the node is trusted, Quarantined, Misconfigured, Stale, or Absent: there is no
// marker, or none that is valid now.
type MarkReply struct {
	Status Status
	Marker
	// Left is how long the node remains quarantined (Quarantined); 0 if the clock was
	// set back since the marker was written, so that it has to be written again.
	Left time.Duration
	// TrustedFrom is the time since which the node may grant, on its own clock; zero if
	// it never was in quarantine.
	TrustedFrom time.Time
	// Replicas is how many replicas of the node are online, with the lag that its marker
	// allows.
	Replicas int
	// Now is the node's clock when it answered.
	Now time.Time
}

// Marker is what a reply says of the node's marker.
type Marker struct {
	// Guard is what it says (Misconfigured, and to a MarkRequest); nil if it cannot be
	// read. Version is then that of its format.
	Guard   *Guard
	Version string
	// Reason is why the node is or was quarantined (Quarantined, and to a MarkRequest).
	Reason string
	// NeedsMark says that the node has to be marked (Quarantined; Granted, to an
	// OpExtend): it has no marker, or one from before it restarted or was promoted, from
	// a clock that was set back since, or from before a marking that the client knows
	// of. Its quarantine begins when it is marked.
	NeedsMark bool
	// Server identifies the server that granted (to an OpAcquire), as far as the node
	// knows it. In one round no two nodes may name the same server: an address can lead
	// to another server at any time.
	Server string
	// Epoch counts the markings (Granted, to an OpAcquire, and to a MarkRequest). It is
	// 0 if the node has several markers. Lineage is the marker's, and Epochs is what it
	// notes of all nodes, in the same replies. Epochs may be left out of a grant if the
	// client got it before.
	Epoch   uint64
	Lineage string
	Epochs  Epochs
}

// Mark says what a MarkRequest does.
type Mark uint8

// What a MarkRequest can do.
const (
	// MarkRead writes nothing.
	MarkRead Mark = iota
	// MarkWrite writes the marker, with a quarantine, if there is none, or if
	// it is from another server, from a clock that was set back since, from before a
	// marking that the client knows of (Epoch), or from a lower Generation, of another
	// membership too.
	MarkWrite
	// MarkFresh trusts the node at once if it has no marker, or is quarantined because it
	// had none (ReasonNew): its sender knows that it cannot have forgotten a lock, because
	// there was none. Of this membership, it writes a marker from before a restart, a
	// marking or a change with a quarantine, as MarkWrite does. It changes no other one.
	MarkFresh
	// MarkReplace writes the marker over another membership's, or over that of a lower
	// Generation, with a quarantine of Least at the least. If the Guard is Told, so is
	// the marker: the node is no member of the membership.
	MarkReplace
	// MarkBar removes the node from its membership: its marker is for BarredMembership,
	// until a MarkReplace, and From that membership. A node that is already marked for
	// the Membership and Generation of the Guard is not changed. Misconfigured, with its
	// marker as it is now.
	MarkBar
	// MarkNote notes the Epochs in the marker, and changes nothing else.
	MarkNote
)
