package protocol

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

// This file is the rule of Once: what the nodes' records say about an occurrence.
//
// An occurrence is completed when a quorum, q of n nodes, has a record of it. So
// every n-q+1 nodes that have kept their records include one that has it: only
// the word of so many says that it is not completed. A node has kept its records
// of a name
//   - if its memory of the name is whole: it took over the records of n-q+1 nodes
//     that had kept theirs, under the lock, and has lost nothing since;
//   - or if it has lost nothing for longer than records are kept, by any caller:
//     the longest retention counts that a node which answers knows of. A node
//     that lost its data does not know it, so it does not judge by itself;
//   - or if it is as old as the oldest node that answers: it began with the
//     others, without data, and so had nothing to lose. If it is wrong that
//     this node began with the others, then the oldest of a quorum lost its data
//     after the record, and so did every other node of that quorum that does not
//     have the record: then no n-q+1 nodes have kept their records.

// Said is what one node says about an occurrence.
type Said struct {
	Answered  bool
	Completed bool          // it has the record
	Count     int           // how many records of the name it has
	Whole     bool          // its memory of the name is whole
	Lasted    time.Duration // how long it has lost nothing at least
	Retention time.Duration // how long records of the name are kept, as far as it knows
	Age       time.Duration // how long ago it was marked; 0 if that is not known
	New       bool          // it had no data then
	Now       time.Time     // its clock
	Begun     time.Time     // when its memory of the name began
	Reach     time.Duration // how far back that is complete
}

// SaidBy returns what a node said in reply to an OpCheck.
func SaidBy(r *node.RecordsReply) Said {
	s := Said{
		Answered: true, Completed: r.Status == node.Granted, Count: r.Count, Whole: r.Whole, New: r.New, Retention: r.Retention,
		Now: r.Now, Begun: r.Begun, Reach: r.Now.Sub(r.Since), Lasted: r.Now.Sub(r.Begun),
	}
	if !r.Marked.IsZero() {
		s.Age = r.Now.Sub(r.Marked)
		s.Lasted = max(s.Lasted, s.Age)
	}
	return s
}

// Recollection is how far the nodes' records of a name can be relied on.
type Recollection uint8

// What the nodes remember.
const (
	// Unsure: nodes that did not answer may have the record, and those that
	// answered are too few to exclude it.
	Unsure Recollection = iota
	// Remembered: enough nodes have kept their records.
	Remembered
	// Unused: no node that answered has any sign that the name was used before.
	Unused
	// Forgotten: so many nodes have lost their records that the rest are too
	// few, even if all answer.
	Forgotten
)

// Found is what the nodes say together.
type Found struct {
	Completed int          // how many nodes have the record
	Memory    Recollection // whether its absence means that it is not completed
	Sure      bool         // enough have kept their records by their own word
	Heard     Set          // who has answered
	Lacking   Set          // whose memory is not whole
	Kept      Set          // who has kept its records
	Sources   Set          // whose records are complete, taken together; for Unsure none
}

// Need returns how many of n nodes must have kept their records.
func Need(n int) int { return n - Quorum(n) + 1 }

// Find judges what the nodes have said, as if no more answers came.
func Find(nodes []Said) (f Found) {
	var longest, oldest time.Duration
	for _, s := range nodes {
		longest, oldest = max(longest, s.Retention), max(oldest, s.Age)
	}
	own, used, need := 0, false, Need(len(nodes))
	for i, s := range nodes {
		if !s.Answered {
			continue
		}
		f.Heard |= Of(i)
		used = used || s.Count > 0
		if s.Completed {
			f.Completed++
		}
		if !s.Whole {
			f.Lacking |= Of(i)
		}
		kept := s.Whole || s.Lasted >= longest
		if kept {
			own++
		}
		if kept || s.New && oldest-s.Age <= together {
			f.Kept |= Of(i)
		}
	}
	f.Sure = own >= need
	switch answered := f.Heard.Count(); {
	case answered < Quorum(len(nodes)):
	case f.Kept.Count() >= need:
		f.Memory, f.Sources = Remembered, f.Kept
	case f.Kept.Count()+len(nodes)-answered >= need:
	case f.Kept == 0 && !used:
		f.Memory, f.Sources = Unused, f.Heard
	default:
		f.Memory, f.Sources = Forgotten, f.Heard
	}
	return f
}

// together is how far apart nodes may have been marked that began together.
const together = 3 * time.Second
