//go:build model

package explore

import "testing"

// TestSpareRulesAreNotMissed is for make model: it takes long.
func TestSpareRulesAreNotMissed(t *testing.T) {
	binary := mutated(t)
	for _, r := range Spare() {
		t.Run(r.Name, func(t *testing.T) { t.Log(runMutant(t, binary, r)) })
	}
}
