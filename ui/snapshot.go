package ui

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/node"
)

// snapshot is what a survey has found. It does not change, except that it
// remembers what was made of it.
type snapshot struct {
	at    time.Time
	took  time.Duration
	asOf  time.Time // when enough nodes reported the locks; zero if they never did
	locks []lock    // sorted by name
	nodes []nodeHealth
	pulse *admin.Pulse
	err   error   // too few nodes answered: the locks are those of asOf
	lates []event // recent events, the last first
	trend []moment

	// For the history: the tokens of the last breaks, by the names of the locks,
	// and a closer look at those that are gone.
	broken map[string]redlatch.Token
	gone   map[string]*admin.LockState

	look    func(name string) (*admin.LockState, error)
	mu      sync.Mutex
	details map[string]*detail
	made    map[view]*parts
}

// need returns how many nodes in service are needed; 0 if that is not known yet.
func (s *snapshot) need() int { return s.pulse.Need }

// lock is what is shown of a lock in the list.
type lock struct {
	id      string // of its row
	name    string
	folded  string // the name and the first owners, in lower case, for the search
	state   admin.State
	holders []holder
	waiting int
	naming  int // how many nodes name the first holder
	nodes   int
}

// holder is one holder of a lock.
type holder struct {
	redlatch.Holder
	until time.Time // zero if it never ends

	// For the history: when the survey was that first found this expiry, and
	// whether an extension is overdue since.
	extended time.Time
	overdue  bool
	on       []time.Time // when it expires on each node; zero where it is not. Only the first holder has it
}

// same reports whether two entries are of one holding.
func (h *holder) same(other *holder) bool {
	return h.Owner == other.Owner && h.Token == other.Token && h.Slot == other.Slot && h.Shared == other.Shared
}

// role says what a holder has of a lock that is shared; empty for all of it.
func (h *holder) role() string {
	switch {
	case h.Slots > 0:
		return fmt.Sprintf("slot %d of %d", h.Slot, h.Slots)
	case h.Shared:
		return "reader"
	}
	return ""
}

// detail is all about one lock.
type detail struct {
	once  sync.Once
	at    time.Time
	state *admin.LockState
	err   error
}

// idOf returns an id for an element: names may contain anything.
func idOf(kind string, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return kind + hex.EncodeToString(sum[:8])
}

// newLock keeps of a lock's state what the list shows. at is when the nodes
// answered.
func newLock(l *admin.LockState, at time.Time) lock {
	k := lock{
		id: idOf("l", l.Name), name: l.Name, state: l.State(),
		waiting: l.Waiting, naming: l.Naming(), nodes: len(l.Nodes),
	}
	shown := l.Holders
	if l.Held { // without those that no majority names
		shown = shown[:shown[0].Holders]
	}
	folded := []string{l.Name}
	for i, h := range shown {
		k.holders = append(k.holders, newHolder(h, at))
		if i < maxListed {
			folded = append(folded, h.Owner)
		}
	}
	if len(k.holders) > 0 {
		k.holders[0].on = expiries(l, &k.holders[0], at)
	}
	k.folded = strings.ToLower(strings.Join(folded, "\n"))
	return k
}

// expiries returns when a holder's lock expires on each node; zero where it has
// none.
func expiries(l *admin.LockState, h *holder, at time.Time) []time.Time {
	on := make([]time.Time, len(l.Nodes))
	for i := range l.Nodes {
		n := &l.Nodes[i]
		for _, there := range n.Holders {
			if n.Err == nil && there.Token == h.Token {
				on[i] = at.Add(there.Until.Sub(n.Reply.Now))
				break
			}
		}
	}
	return on
}

func newHolder(h redlatch.Holder, at time.Time) holder {
	k := holder{Holder: h}
	if !k.never() {
		k.until = at.Add(h.Left)
	}
	return k
}

// never reports that it does not expire.
func (h *holder) never() bool { return h.Left == node.NoExpiry }

// steady is how much a deadline may differ from that of the last survey and
// still be the same: the nodes report what is left, and answers take time.
const steady = 400 * time.Millisecond

// settle takes over the deadlines of the last survey that have not moved, so
// that a row does not change that shows nothing new.
func (s *snapshot) settle(last *snapshot) {
	if last == nil {
		return
	}
	for i := range s.nodes {
		if now, before := &s.nodes[i], &last.nodes[i]; now.until.Sub(before.until).Abs() < steady {
			now.until = before.until
		}
	}
	for i := range s.locks {
		now := &s.locks[i]
		before := last.lock(now.name)
		if before == nil || len(before.holders) != len(now.holders) {
			continue
		}
		for n := range now.holders {
			b, h := &before.holders[n], &now.holders[n]
			if b.same(h) && h.until.Sub(b.until).Abs() < steady {
				h.until = b.until
			}
		}
	}
}

// lock returns what is shown of a lock in the list; nil if it is not in it.
func (s *snapshot) lock(name string) *lock {
	i, found := slices.BinarySearchFunc(s.locks, name, func(l lock, name string) int { return strings.Compare(l.name, name) })
	if !found {
		return nil
	}
	return &s.locks[i]
}

// detail returns all about one lock. All who ask for it together share one
// request to the nodes.
func (s *snapshot) detail(name string) *detail {
	s.mu.Lock()
	d := s.details[name]
	if d == nil {
		d = &detail{}
		s.details[name] = d
	}
	s.mu.Unlock()
	d.once.Do(func() {
		d.state, d.err = s.look(name)
		d.at = time.Now()
	})
	return d
}

// unknown returns the lock as one of which nobody knows whether it is still so.
func (l *lock) unknown() *lock {
	k := *l
	k.state = admin.StateUnknown
	return &k
}

// shared says how many hold a lock together; empty for a lock with one holder.
func (l *lock) shared() string {
	if len(l.holders) == 0 {
		return ""
	}
	switch h := &l.holders[0]; {
	case h.Slots > 0:
		return fmt.Sprintf("%d of %s", len(l.holders), count(h.Slots, "slot"))
	case h.Shared:
		return count(len(l.holders), "reader")
	}
	return ""
}
