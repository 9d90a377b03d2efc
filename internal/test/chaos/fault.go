//go:build unix

package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Family is a kind of fault.
type Family struct {
	Name    string
	About   string       // what it does, in a few words
	Beyond  bool         // it breaks an assumption of docs/guarantees.md
	clock   bool         // it moves the clock of a server
	kinds   []ServerKind // the servers that it can hit; nil for all
	mild    bool         // it does not keep a node from granting
	forgets bool         // a Redis server is quarantined after it
	holder  int          // how often of two times it hits a client that holds a lock, if there is one

	// One of them plans the fault of a node, or of a client, or of all.
	node   func(w *nemesis, n *node, rng *rand.Rand) strike
	client func(w *nemesis, m *member, rng *rand.Rand) strike
	edge   func(w *nemesis, rng *rand.Rand) strike
}

// draw takes a target, and plans the fault; nil if there is no target now.
func (f Family) draw(w *nemesis, rng *rand.Rand) *strike {
	var s strike
	own := rand.New(rand.NewPCG(rng.Uint64(), 0)) // the fault runs on a goroutine of its own
	fault := &Fault{Family: f.Name, Beyond: f.Beyond, Span: Span{From: now()}}
	switch {
	case f.edge != nil:
		if !w.takeEdge() {
			return nil
		}
		s = f.edge(w, own)
	case f.client != nil:
		m := w.freeMember(rng, rng.IntN(2) < f.holder)
		if m == nil {
			return nil
		}
		s = f.client(w, m, own)
		s.member, fault.Client = m, m.number
	default:
		n := w.freeNode(rng, f)
		if n == nil {
			return nil
		}
		s = f.node(w, n, own)
		s.node, fault.Node = n, n.number
		if f.forgets && n.kind == Redis { // a database keeps what it has committed
			s.quarantine = max(s.quarantine, w.bounds.quarantine())
		}
	}
	s.fault, fault.Detail = fault, s.detail
	return &s
}

// Group says whether it is within the assumptions or beyond them, or at their
// edges.
func (f Family) Group() string {
	switch {
	case f.Beyond:
		return "beyond"
	case f.edge != nil:
		return "edges"
	}
	return "within"
}

// hits reports whether it can hit a kind of server.
func (f Family) hits(k ServerKind) bool { return f.kinds == nil || slices.Contains(f.kinds, k) }

// redisAlone are the kinds of a fault that only a Redis server can have.
var redisAlone = []ServerKind{Redis}

// Families are all kinds of faults.
func Families() []Family {
	return slices.Concat(serverFaults, clockFaults, networkFaults, clientFaults, edgeFaults)
}

// strike is a fault that is about to be injected. It owns its target until it
// is healed.
type strike struct {
	fault      *Fault  // its record
	node       *node   // its target
	member     *member // or a client
	detail     string
	lasts      time.Duration // between apply and heal
	quarantine time.Duration // how long the node does not grant after the healing

	apply func(f *Fault) error
	heal  func(f *Fault) error // nil if there is nothing to heal
}

// Choose returns the families that a list names: all but the edges, within, beyond,
// edges, none, or names separated by commas.
func Choose(list string) (chosen []Family, err error) {
	words, names := strings.Split(strings.ReplaceAll(list, " ", ""), ","), []string{}
	for _, f := range Families() {
		names = append(names, f.Name)
		if slices.ContainsFunc(words, func(word string) bool { return word == f.Name || word == "all" && f.edge == nil || word == f.Group() }) {
			chosen = append(chosen, f)
		}
	}
	for _, word := range words {
		if !slices.Contains(append(names, "all", "within", "beyond", "edges", "none"), word) {
			return nil, fmt.Errorf("the fault %q is unknown: it must be all, within, beyond, edges, none, or one of %s", word, strings.Join(names, ", "))
		}
	}
	return chosen, nil
}

// between draws a time.
func between(rng *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(rng.Int64N(int64(most-least)+1))
}
