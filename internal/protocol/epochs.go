package protocol

import "github.com/redlatch/redlatch/node"

// This file judges the epochs of the nodes' markers. Each marking raises a node's
// epoch. A server that comes back as it was before another one took its place
// has a lower epoch than the client has seen, or than the other nodes have
// noted for its lineage. Its marker does not show that by itself: it is marked again,
// above what is known, with a whole quarantine. Lineages says what with.

// Shown is what a node's marker says of epochs.
type Shown struct {
	Epoch   uint64      // counts the markings of the node
	Lineage string      // that of its data
	Epochs  node.Epochs // what it has noted of all nodes
}

// ShownBy returns what a reply says of a marker's epochs.
func ShownBy(m *node.Marker) Shown { return Shown{m.Epoch, m.Lineage, m.Epochs} }

// Shows returns what a marker shows to a client of a membership that last saw last, nil
// for nothing; false if that is nothing new, or not of this membership.
func Shows(m *node.Marker, membership string, last *Shown) (now Shown, news bool) {
	if m.Epoch == 0 || m.Lineage == "" || m.Guard != nil && m.Guard.Membership != membership {
		return now, false
	}
	if now = ShownBy(m); now.Epochs == "" && last != nil {
		now.Epochs = last.Epochs // it was left out
	}
	return now, last == nil || now != *last
}

// AddTo returns what is known of all nodes, and from now on what the marker shows.
func (s Shown) AddTo(known node.Epochs) node.Epochs {
	return known.Merge(s.Epochs).Merge(node.NewEpochs(map[string]uint64{s.Lineage: s.Epoch}))
}

// Replaces reports whether the node has other data than at last. Then what was known of
// its epoch counts no more: the lineage that took the place of the last one may
// have a lower epoch than the one that ended all unlisted ones.
func (s Shown) Replaces(last *Shown) bool { return last != nil && last.Lineage != s.Lineage }

// Lacks reports whether the node has a marker, and has not noted what is known.
func (s Shown) Lacks(known node.Epochs) bool { return s.Epoch > 0 && s.Epochs.Merge(known) != s.Epochs }

// Believed returns what counts of what a marker says whose epoch is below the highest
// that is known of the node: the server was replaced by another, and has come back as it
// was. It is not trusted, and has to be marked.
func Believed(s MarkerState, epoch, known uint64) MarkerState {
	if epoch > 0 && epoch < known {
		s.Trusted, s.Left = false, 0
	}
	return s
}

// MarkWith returns a request to a node's marker, with what it is marked with, or notes.
// known is the highest epoch that is known of the node. A node that is no member of the
// membership is only told of it.
func MarkWith(req node.MarkRequest, lineage string, epochs node.Epochs, known uint64, member bool) node.MarkRequest {
	req.Lineage, req.Epochs = lineage, epochs
	if req.Mark != node.MarkRead { // what is read is judged by Believed: its lineage may be new
		req.Epoch = known
	}
	if lineage != "" { // its epoch becomes what is noted
		req.Epoch = max(req.Epoch, epochs.Of(lineage)-1)
	}
	if req.Mark == node.MarkReplace && !member {
		told := *req.Guard
		told.Told, req.Guard = true, &told
	}
	return req
}
