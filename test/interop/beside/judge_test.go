//go:build unix

package beside_test

import (
	"strings"
	"testing"

	"github.com/redlatch/redlatch/test/interop/beside"
)

// TestJudgeFindsWhatMustNotBe plays two holds at once. What follows one after the other is
// tested with the judge of package exclusion.
func TestJudgeFindsWhatMustNotBe(t *testing.T) {
	t.Parallel()
	type hold struct {
		kind  string
		token uint64
		lost  bool
	}
	for name, c := range map[string]struct {
		first, second hold // both begin before the first one ends
		want          string
	}{
		"two at once":         {hold{token: 1}, hold{token: 2}, "overlap"},
		"one of them lost":    {hold{token: 1}, hold{token: 2, lost: true}, ""},
		"two readers":         {hold{kind: "r", token: 2}, hold{kind: "r", token: 1}, ""},
		"reader and writer":   {hold{kind: "r", token: 1}, hold{token: 2}, "overlap"},
		"one slot twice":      {hold{kind: "s2", token: 1}, hold{kind: "s2", token: 2}, "overlap"},
		"slots of two counts": {hold{kind: "s2", token: 1}, hold{kind: "s3", token: 2}, "overlap"},
	} {
		j := beside.NewJudge("n", nil)
		j.NoFences = true
		first, second := j.Begin("a side", c.first.kind), j.Begin("another", c.second.kind)
		j.Enter(first, c.first.token, 1)
		j.Enter(second, c.second.token, 1)
		j.Leave(first)
		j.Settle(first, !c.first.lost)
		j.Leave(second)
		j.Settle(second, !c.second.lost)
		faults := j.Faults()
		if c.want == "" && len(faults) > 0 || c.want != "" && (len(faults) != 1 || !strings.Contains(faults[0], c.want)) {
			t.Errorf("%s: found is %q, want %q", name, faults, c.want)
		}
	}
}
