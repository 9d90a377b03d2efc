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
	// Its clock, when its memory of the name began, and since when that is complete.
	Now, Begun, Since time.Time
}

// SaidBy returns what a node said in reply to an OpCheck.
func SaidBy(r node.Reply) Said {
	s := Said{Answered: true, Completed: r.Status == node.Granted, Whole: true, Now: r.Now, Since: r.Now}
	if m := r.Memory; m != nil {
		s.Count, s.Whole, s.New, s.Retention = m.Count, m.Whole, m.New, m.Retention
		s.Begun, s.Since = m.Begun, m.Since
		s.Lasted = r.Now.Sub(m.Begun)
		if !m.Marked.IsZero() {
			s.Age = r.Now.Sub(m.Marked)
			s.Lasted = max(s.Lasted, s.Age)
		}
	}
	return s
}

// kept reports whether, by its own word, the node has kept its records of the name,
// if they are kept for so long.
func (s *Said) kept(longest time.Duration) bool { return s.Whole || s.Lasted >= longest }

// Retention returns the longest retention of the name that a node knows of.
func Retention(nodes []Said) (longest time.Duration) {
	for _, s := range nodes {
		longest = max(longest, s.Retention)
	}
	return longest
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
	Kept      Set          // who has kept its records
	Sources   Set          // whose records are complete, taken together; for Unsure none
}

// Find judges what the nodes said. final says that no more answers will come.
func Find(nodes []Said, final bool) (f Found) {
	need := len(nodes) - Quorum(len(nodes)) + 1
	longest := Retention(nodes)
	answered, own, oldest, used := 0, 0, time.Duration(0), false
	for _, s := range nodes {
		if !s.Answered {
			continue
		}
		answered++
		oldest = max(oldest, s.Age)
		used = used || s.Count > 0
		if s.kept(longest) {
			own++
		}
		if s.Completed {
			f.Completed++
		}
	}
	if answered < Quorum(len(nodes)) || !final && own < need {
		return f
	}
	var all, kept Set
	for i, s := range nodes {
		if s.Answered {
			all |= Of(i)
			if s.kept(longest) || s.New && oldest-s.Age <= together {
				kept |= Of(i)
			}
		}
	}
	f.Kept = kept
	switch {
	case kept.Count() >= need:
		f.Memory, f.Sources = Remembered, kept
	case kept.Count()+len(nodes)-answered >= need:
		f.Memory = Unsure
	case kept == 0 && !used:
		f.Memory, f.Sources = Unused, all
	default:
		f.Memory, f.Sources = Forgotten, all
	}
	return f
}

// together is how far apart nodes may have been marked that began together.
const together = 3 * time.Second
