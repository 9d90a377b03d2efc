package node

import (
	"math/rand/v2"
	"testing"
)

// TestEpochsAreMergedInAnyOrder merges epochs in different orders, twice, and
// compares what each lineage must have.
func TestEpochsAreMergedInAnyOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	lineages := []string{OtherLineages, "0a", "0b", "0c", "0d"}
	for range 10_000 {
		var e [3]Epochs
		for i := range e {
			of := map[string]uint64{}
			for _, lineage := range lineages {
				if r.IntN(2) == 0 {
					of[lineage] = r.Uint64N(4)
				}
			}
			e[i] = NewEpochs(of)
		}
		merged := e[0].Merge(e[1]).Merge(e[2])
		for _, lineage := range append(lineages, "0e") {
			if got, want := merged.Of(lineage), max(e[0].Of(lineage), e[1].Of(lineage), e[2].Of(lineage)); got != want {
				t.Fatalf("%q, %q and %q are merged to %q: %d for %s, want %d", e[0], e[1], e[2], merged, got, lineage, want)
			}
		}
		if other := e[2].Merge(e[0].Merge(e[1])); other != merged || merged.Merge(e[1]) != merged {
			t.Fatalf("%q, %q and %q are merged to %q, or %q, and that with the second to %q", e[0], e[1], e[2], merged, other, merged.Merge(e[1]))
		}
	}
}
