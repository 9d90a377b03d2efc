//go:build unix

package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Rule is a rule that a history must keep.
type Rule string

// The rules, as the package comment numbers them.
const (
	Overlap    Rule = "overlap"
	TokenOrder Rule = "token order"
	StaleWrite Rule = "stale write"
	LostUpdate Rule = "lost update"
	Ghost      Rule = "ghost"
	Liveness   Rule = "liveness"
	Order      Rule = "linearizability"
	Creation   Rule = "extension"
)

// Finding is a violation of a rule.
type Finding struct {
	Rule   Rule   `json:"rule"`
	Name   string `json:"name,omitempty"`
	At     int64  `json:"at,omitempty"`
	Text   string `json:"text"`
	Excuse string `json:"excuse,omitempty"` // the fault beyond the assumptions that explains it
}

// Verdict is the judgement of a history.
type Verdict struct {
	Violations []Finding `json:"violations"` // nothing excuses them
	Excused    []Finding `json:"excused"`    // a fault beyond the assumptions does
	// Corruption is the damage to a resource that was not fenced: no violation
	// of a lock's promises, and the reason for fencing.
	Corruption []Finding `json:"corruption"`

	Acquisitions int `json:"acquisitions"`
	Missed       int `json:"missed"`
	Writes       int `json:"writes"`
	Refused      int `json:"refused"` // stale steps that the resource refused
	Lost         int `json:"lost"`    // leases that ended before they were released
	Faults       int `json:"faults"`
}

// Held reports whether all promises were kept.
func (v *Verdict) Held() bool { return len(v.Violations) == 0 }

// Judge checks a history against all rules.
func Judge(h *History) *Verdict {
	v := &Verdict{Faults: len(h.Faults), Writes: len(h.Rows), Violations: []Finding{}, Excused: []Finding{}, Corruption: []Finding{}}
	for _, e := range h.Events {
		switch e.Kind {
		case Got:
			v.Acquisitions++
		case Missed:
			v.Missed++
		case Refused:
			v.Refused++
		case Lost:
			v.Lost++
		}
	}
	byName := h.leases()
	for _, name := range sortedNames(byName) {
		v.overlaps(h, byName[name])
		v.tokens(h, byName[name])
		v.extensions(h, byName[name])
		v.linear(h, byName[name])
	}
	v.resource(h)
	v.ghosts(h)
	v.liveness(h)
	return v
}

func sortedNames[V any](m map[string]V) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// find records a violation, with its excuse if there is one.
func (v *Verdict) find(f Finding, excuse *Fault) {
	if excuse == nil {
		v.Violations = append(v.Violations, f)
		return
	}
	f.Excuse = fmt.Sprintf("%s on %s: %s", excuse.Family, excuse.where(), excuse.Detail)
	v.Excused = append(v.Excused, f)
}

func (l *Lease) String() string {
	return fmt.Sprintf("client %d.%d's lease %d (token %d)", l.Client, l.Life, l.Seq, l.Token)
}

// overlaps finds leases that were valid at the same time.
func (v *Verdict) overlaps(h *History, leases []*Lease) {
	for i, a := range leases {
		for _, b := range leases[i+1:] {
			if b.Got >= a.Until {
				break // and so do all after it
			}
			end := min(a.Until, b.Until)
			if end <= b.Got {
				continue
			}
			// The fault that removed a's lock, or ended the quarantine of a
			// node that had forgotten it, came while a's lease was valid and
			// before b had the lock.
			excuse, _ := h.breakIn(a.Asked, b.Got)
			v.find(Finding{Rule: Overlap, Name: a.Name, At: b.Got,
				Text: fmt.Sprintf("%s and %s were both valid for %v", a, b, time.Duration(end-b.Got))}, excuse)
		}
	}
}

// tokens finds leases whose token is not above that of a lease which was
// acquired before they were asked for.
func (v *Verdict) tokens(h *History, leases []*Lease) {
	highest := make([]uint64, len(leases)+1) // of the first i, by when they were acquired
	for i, l := range leases {
		highest[i+1] = max(highest[i], l.Token)
	}
	for _, b := range leases {
		before, _ := slices.BinarySearchFunc(leases, b.Asked, func(l *Lease, t int64) int { return cmp.Compare(l.Got, t) })
		if highest[before] < b.Token {
			continue
		}
		for _, a := range leases[:before] {
			if a.Token >= b.Token {
				v.find(Finding{Rule: TokenOrder, Name: b.Name, At: b.Got,
					Text: fmt.Sprintf("%s was asked for after %s was acquired, and its token is not above it", b, a)}, h.forgottenIn(a.Asked, b.Got))
			}
		}
	}
}

// extensions finds those that were confirmed though another lease had been
// granted in the meantime: the extension must have created the lock again.
func (v *Verdict) extensions(h *History, leases []*Lease) {
	for i, a := range leases {
		for _, x := range a.Extended {
			if i+1 == len(leases) || leases[i+1].Got >= x.From {
				continue
			}
			excuse, _ := h.breakIn(a.Asked, x.To)
			v.find(Finding{Rule: Creation, Name: a.Name, At: x.To,
				Text: fmt.Sprintf("%s was extended after %s was given", a, leases[i+1])}, excuse)
		}
	}
}

// resource finds the effects of stale writers.
func (v *Verdict) resource(h *History) {
	find := func(f Finding) {
		if h.Fenced {
			v.Violations = append(v.Violations, f)
			return
		}
		v.Corruption = append(v.Corruption, f)
	}
	highest, counter := map[string]uint64{}, map[string]int64{}
	type key struct {
		name   string
		client int
		token  uint64
		is     int64
	}
	written := map[key]int{}
	for i, r := range h.Rows {
		if r.Token < highest[r.Name] {
			find(Finding{Rule: StaleWrite, Name: r.Name,
				Text: fmt.Sprintf("write %d, of client %d with token %d, was accepted after one with token %d", i+1, r.Client, r.Token, highest[r.Name])})
		}
		if r.Was != counter[r.Name] {
			find(Finding{Rule: LostUpdate, Name: r.Name,
				Text: fmt.Sprintf("write %d, of client %d, made %d of %d when the counter was at %d", i+1, r.Client, r.Is, r.Was, counter[r.Name])})
		}
		highest[r.Name], counter[r.Name] = max(highest[r.Name], r.Token), r.Is
		written[key{r.Name, r.Client, r.Token, r.Is}]++
	}
	for name, value := range h.Counters {
		if value != counter[name] {
			find(Finding{Rule: LostUpdate, Name: name, Text: fmt.Sprintf("the counter is at %d, and the last write made it %d", value, counter[name])})
		}
	}
	for _, e := range h.Events {
		if k := (key{e.Name, e.Client, e.Token, e.To}); e.Kind == Wrote && written[k] == 0 {
			find(Finding{Rule: LostUpdate, Name: e.Name, At: e.At, Text: fmt.Sprintf("client %d was told that %d was written, and it is not there", e.Client, e.To)})
		}
	}
}

// ghosts finds locks that are left on servers.
func (v *Verdict) ghosts(h *History) {
	for node, keys := range h.Left {
		for _, key := range keys {
			v.find(Finding{Rule: Ghost, Name: key, Text: fmt.Sprintf("node %d has a lock on it, which nobody holds and whose time is over", node)}, nil)
		}
	}
}

// liveness finds clients that were granted no lock after everything was healed.
func (v *Verdict) liveness(h *History) {
	for client := 1; client <= h.Clients; client++ {
		if !slices.Contains(h.Live, client) {
			v.find(Finding{Rule: Liveness, At: h.Healed, Text: fmt.Sprintf("client %d was given no lock after all faults were healed", client)}, nil)
		}
	}
}
