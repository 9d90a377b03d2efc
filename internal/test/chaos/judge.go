//go:build unix

package chaos

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/redlatch/redlatch/internal/test/exclusion"
	contract "github.com/redlatch/redlatch/node"
)

// Rule is a rule that a history must keep.
type Rule = exclusion.Rule

// The rules, as the package comment numbers them.
const (
	Overlap    = exclusion.Overlap
	Keep       = exclusion.Keep
	TokenOrder = exclusion.TokenOrder

	StaleWrite Rule = "stale write"
	LostUpdate Rule = "lost update"
	StaleRead  Rule = "stale read"
	Refusal    Rule = "refusal"
	Ghost      Rule = "ghost"
	Liveness   Rule = "liveness"
	Creation   Rule = "extension"
	Calm       Rule = "calm"
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

	Counts Counts `json:"counts"`
}

// Held reports whether all promises were kept.
func (v *Verdict) Held() bool { return len(v.Violations) == 0 }

// Judge checks a history against all rules.
func Judge(h *History) *Verdict {
	v := &Verdict{Counts: count(h.Events)}
	byName := h.leases()
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		v.leases(h, name, byName[name])
		v.extensions(h, byName[name])
		v.refusals(h, byName[name])
	}
	v.resource(h)
	v.ghosts(h)
	v.liveness(h)
	v.calm(h)
	return v
}

// find records a violation, with its excuse if there is one.
func (v *Verdict) find(rule Rule, name string, at int64, excuse *Fault, format string, args ...any) {
	f := Finding{Rule: rule, Name: name, At: at, Text: fmt.Sprintf(format, args...)}
	if excuse == nil {
		v.Violations = append(v.Violations, f)
		return
	}
	f.Excuse = fmt.Sprintf("%s on %s: %s", excuse.Family, excuse.where(), excuse.Detail)
	v.Excused = append(v.Excused, f)
}

// leases judges the leases of a name, and counts those that were valid together. The
// fault that explains a broken rule removed a lock, or ended the quarantine of a node
// that had forgotten it, while the first lease was valid and before the second one was.
func (v *Verdict) leases(h *History, name string, leases []*Lease) {
	var all []*exclusion.Lease
	for _, l := range leases {
		all = append(all, &l.Lease)
	}
	for _, f := range exclusion.Judge(all) {
		v.find(f.Rule, name, f.At, h.breakIn(f.Since, f.At), "%s", f.Text)
	}
	for _, l := range all {
		if l.Until <= l.Got {
			continue
		}
		beside := map[contract.Mode]int{l.Mode: 1}
		for _, a := range l.Beside {
			beside[a.At(l.Got).Mode]++
		}
		v.Counts[MostReaders] = max(v.Counts[MostReaders], beside[Reader])
		v.Counts[MostSlots] = max(v.Counts[MostSlots], beside[Slot])
	}
}

// extensions finds those that were confirmed though another lease, beside which
// there is no room, had been granted in the meantime: the extension must have
// created the lock again.
func (v *Verdict) extensions(h *History, leases []*Lease) {
	for i, a := range leases {
		for _, x := range a.Extended {
			if a.Broken != nil {
				// What was sent before the break ended may be confirmed after it.
				if x.From > a.Broken.To {
					v.find(Creation, a.Name, x.To, h.breakIn(a.Asked, x.To), "%s was extended after its lock was broken", a)
				}
				continue
			}
			for _, b := range leases[i+1:] {
				if b.Got >= x.From {
					break // and so do all after it
				}
				if !exclusion.Conflict(a.At(x.From), b.Share) {
					continue
				}
				v.find(Creation, a.Name, x.To, h.breakIn(a.Asked, x.To), "%s was extended after %s was given", a, b)
				break
			}
		}
	}
}

// refusals finds leases that the resource refused while they were valid.
func (v *Verdict) refusals(h *History, leases []*Lease) {
	if !h.Fenced {
		return
	}
	for _, l := range leases {
		for _, at := range l.Refused {
			if at >= l.Until {
				continue
			}
			// The token that it was compared with is that of one of these.
			asked := l.Asked
			for _, other := range leases {
				if other.Token > l.Token && other.Got <= at {
					asked = min(asked, other.Asked)
				}
			}
			v.find(Refusal, l.Name, at, h.breakIn(asked, at), "the resource refused %s, which was valid for another %v", l, time.Duration(l.Until-at))
		}
	}
}

// resource finds the effects of stale holders.
func (v *Verdict) resource(h *History) {
	find := func(rule Rule, part, format string, args ...any) {
		list := &v.Violations
		if !h.Fenced {
			list = &v.Corruption
		}
		*list = append(*list, Finding{Rule: rule, Name: part, Text: fmt.Sprintf(format, args...)})
	}
	// By part: the highest tokens of all steps, of those that are no reader's, and
	// of a reader's.
	highest, writer, reader, counter := map[string]uint64{}, map[string]uint64{}, map[string]uint64{}, map[string]int64{}
	type key struct {
		part   string
		client int
		token  uint64
		is     int64
	}
	written := map[key]int{}
	for i, r := range h.Rows {
		who := fmt.Sprintf("step %d, of client %d with token %d", i+1, r.Client, r.Token)
		if r.Step == Look {
			v.Counts[Reads]++
			if r.Token < writer[r.Name] {
				find(StaleRead, r.Name, "%s, a read, was accepted after a writer's with token %d", who, writer[r.Name])
			}
			if r.Was != counter[r.Name] {
				find(StaleRead, r.Name, "%s, read %d when the counter was at %d", who, r.Was, counter[r.Name])
			}
			reader[r.Name], highest[r.Name] = max(reader[r.Name], r.Token), max(highest[r.Name], r.Token)
			continue
		}
		switch {
		case r.Token < highest[r.Name]:
			find(StaleWrite, r.Name, "%s, was accepted after one with token %d", who, highest[r.Name])
		case r.Token == reader[r.Name]:
			find(StaleWrite, r.Name, "%s, came after it was a reader's", who)
		}
		if r.Was != counter[r.Name] {
			find(LostUpdate, r.Name, "%s, made %d of %d when the counter was at %d", who, r.Is, r.Was, counter[r.Name])
		}
		highest[r.Name], writer[r.Name] = max(highest[r.Name], r.Token), max(writer[r.Name], r.Token)
		if r.Step == Write {
			v.Counts[Writes]++
			counter[r.Name] = r.Is
			written[key{r.Name, r.Client, r.Token, r.Is}]++
		}
	}
	for part, value := range h.Counters {
		if value != counter[part] {
			find(LostUpdate, part, "the counter is at %d, and the last write made it %d", value, counter[part])
		}
	}
	downgraded := map[attemptID]bool{}
	for _, e := range h.Events {
		if e.Kind == Downgrade {
			downgraded[e.attempt()] = true
		}
		if e.Kind != Wrote {
			continue
		}
		if written[key{cmp.Or(e.Part, e.Name), e.Client, e.Token, e.To}] == 0 {
			find(LostUpdate, e.Name, "client %d was confirmed the write of %d, and it is not there", e.Client, e.To)
		}
		if downgraded[e.attempt()] || e.Mode == Reader {
			find(StaleWrite, e.Name, "client %d wrote %d as a reader", e.Client, e.To)
		}
	}
}

// ghosts finds locks that are left on servers.
func (v *Verdict) ghosts(h *History) {
	for node, keys := range h.Left {
		for _, key := range keys {
			v.find(Ghost, key, 0, nil, "node %d has a lock on it, which nobody holds and whose time is over", node)
		}
	}
}

// liveness finds clients that were granted no lock after everything was healed.
func (v *Verdict) liveness(h *History) {
	for client := 1; client <= h.Clients; client++ {
		if !slices.Contains(h.Live, client) {
			v.find(Liveness, "", h.Healed, nil, "client %d was given no lock after all faults were healed", client)
		}
	}
}

// calmTTL is the lifetime of a lease in a calm run. No lease outlives a machine
// that stalls for longer.
const calmTTL = 10 * time.Second

// calm finds requests that failed, and leases that were lost, in a run without
// faults.
func (v *Verdict) calm(h *History) {
	if !h.Calm {
		return
	}
	for _, e := range h.Events {
		if e.Err == "" || e.Kind != Missed && e.Kind != Lost && e.Kind != Released {
			continue
		}
		var excuse *Fault
		if stalled := time.Duration(e.Stall); stalled > calmTTL {
			excuse = &Fault{Family: "stall", Client: e.Client, Detail: fmt.Sprintf("the machine stalled for %v", stalled)}
		}
		v.find(Calm, e.Name, e.At, excuse, "client %d: %s: %s", e.Client, e.Kind, e.Err)
	}
}
