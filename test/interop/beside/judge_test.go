//go:build unix

package beside_test

import (
	"strings"
	"testing"

	"github.com/redlatch/redlatch/test/interop/beside"
)

// TestJudgeFindsWhatMustNotBe plays holds, and looks at what is found.
func TestJudgeFindsWhatMustNotBe(t *testing.T) {
	t.Parallel()
	type hold struct {
		kind  string
		slot  int
		token uint64
		lost  bool
	}
	for name, c := range map[string]struct {
		holds  []hold
		beside bool   // all begin before the first one ends
		want   string // in the one fault; empty for none
	}{
		"one after the other":            {holds: []hold{{token: 1}, {token: 2}}},
		"two at once":                    {holds: []hold{{token: 1}, {token: 2}}, beside: true, want: "overlap"},
		"the first was lost":             {holds: []hold{{token: 1, lost: true}, {token: 2}}, beside: true},
		"the second was lost":            {holds: []hold{{token: 1}, {token: 2, lost: true}}, beside: true},
		"a token that falls":             {holds: []hold{{token: 2}, {token: 1}}, want: "token order"},
		"a token twice":                  {holds: []hold{{token: 2}, {token: 2}}, want: "token order"},
		"two readers":                    {holds: []hold{{kind: "r", token: 2}, {kind: "r", token: 1}}, beside: true},
		"reader and writer":              {holds: []hold{{kind: "r", token: 1}, {token: 2}}, beside: true, want: "overlap"},
		"a writer below a reader":        {holds: []hold{{kind: "r", token: 2}, {token: 1}}, want: "token order"},
		"two slots":                      {holds: []hold{{"s2", 0, 1, false}, {"s2", 1, 2, false}}, beside: true},
		"one slot twice":                 {holds: []hold{{"s2", 1, 1, false}, {"s2", 1, 2, false}}, beside: true, want: "overlap"},
		"slots of other numbers":         {holds: []hold{{"s2", 0, 1, false}, {"s3", 1, 2, false}}, beside: true, want: "overlap"},
		"a slot below another, later":    {holds: []hold{{"s2", 0, 2, false}, {"s2", 1, 1, false}}, want: "token order"},
		"a slot below another, together": {holds: []hold{{"s2", 0, 2, false}, {"s2", 1, 1, false}}, beside: true},
	} {
		j := beside.NewJudge("n", nil)
		j.NoFences = true
		var all []*beside.Hold
		if c.beside {
			for _, h := range c.holds {
				all = append(all, j.Begin("a side", h.kind))
			}
		}
		for i, h := range c.holds {
			if !c.beside {
				all = append(all, j.Begin("a side", h.kind))
			}
			j.Enter(all[i], h.token, h.slot)
			if !c.beside {
				j.Leave(all[i])
				j.Settle(all[i], !h.lost)
			}
		}
		for i, h := range c.holds {
			if c.beside {
				j.Leave(all[i])
				j.Settle(all[i], !h.lost)
			}
		}
		faults := j.Faults()
		if c.want == "" && len(faults) > 0 || c.want != "" && (len(faults) != 1 || !strings.Contains(faults[0], c.want)) {
			t.Errorf("%s: found is %q, want %q", name, faults, c.want)
		}
	}
}
