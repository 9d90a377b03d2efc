package explore

import (
	"slices"
	"testing"

	"github.com/redlatch/redlatch/node"
)

// TestStatesThatAreOneGoOnAlike takes every step from every state, also from
// those that were seen under the same print before, and compares what the steps
// lead to. Where it fails, the canonical form has forgotten something.
func TestStatesThatAreOneGoOnAlike(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long")
	}
	for name, in := range map[string]Instance{
		"one claim each":  two(func(*Instance) {}),
		"breaks":          two(func(in *Instance) { in.Breaks, in.Clients, in.Tries = true, 1, [MaxClients]int{2} }),
		"repair":          two(func(in *Instance) { repairAlone(in) }),
		"a reader":        two(func(in *Instance) { readerAndWriter(in); in.Duplicates = 1 }),
		"slots":           two(oneServer),
		"a downgrade":     two(downgrade),
		"a slot's repair": two(slotRepair),
		"a pass":          two(func(in *Instance) { passes(in); in.Breaks, in.Duplicates = true, 1 }),
		"a break":         two(func(in *Instance) { broken(in); in.Start = nil }),
		"a change":        two(func(in *Instance) { change(in); in.Runs, in.Silences, in.Back = 2, 1, true }),
		"a restart":       two(func(in *Instance) { loss(in); in.Clients, in.Tries = 1, [MaxClients]int{2} }),
	} {
		m, p := newMachine(in), newPrinter()
		successors := func(s *State) (all []Print) {
			m.Next(s, func(t *State) { all = append(all, m.print(p, t)) })
			slices.SortFunc(all, func(a, b Print) int { return slices.Compare(a[:], b[:]) })
			return slices.Compact(all)
		}
		first := m.init()
		seen := map[Print][]Print{m.print(p, first): successors(first)}
		layer, compared, steps := []*State{first}, 0, 0
		for len(layer) > 0 && len(seen) < further(600, 1000) { // deep enough for claims to end
			var next []*State
			for _, s := range layer {
				m.Next(s, func(to *State) {
					steps++
					pr := m.print(p, to)
					before, known := seen[pr]
					if !known {
						seen[pr] = successors(to)
						next = append(next, to)
						return
					}
					if steps%4 != 0 {
						return // a part of them is enough
					}
					compared++
					if now := successors(to); !slices.Equal(before, now) {
						t.Fatalf("%s: after %+v, a state has %d successors, and %d under the same print before", name, to.step, len(now), len(before))
					}
				})
			}
			layer = next
		}
		if compared < len(seen)/4 {
			t.Errorf("%s: %d comparisons for %d states", name, compared, len(seen))
		}
		t.Logf("%s: %d states, %d compared", name, len(seen), compared)
	}
}

// TestDroppedMessagesMakeNoDifference compares a search with one that drops
// nothing, by the leases that there were.
func TestDroppedMessagesMakeNoDifference(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long")
	}
	for _, share := range []node.Share{{}, reader, slot(2)} {
		with, without := leasesOf(share, false), leasesOf(share, true)
		if len(with) == 0 || len(with) != len(without) {
			t.Errorf("%v: %d leases, and %d if nothing is dropped", share, len(with), len(without))
		}
	}
}

// leasesOf searches what one client can get in two tries.
func leasesOf(share node.Share, keepAll bool) map[[3]int64]bool {
	in := two(func(in *Instance) {
		in.Clients, in.Tries, in.KeepAll = 1, [MaxClients]int{2}, keepAll
		in.Depth, in.Shares[0] = further(8, 9), share
	})
	found := map[[3]int64]bool{}
	newMachine(in).search(func(s *State) bool {
		for k := range s.claims {
			if s.valid(k) {
				c := s.claims[k]
				found[[3]int64{int64(k), int64(c.Token()) - s.clock().UnixMicro(), int64(c.Deadline() - s.now)}] = true
			}
		}
		return false
	})
	return found
}
