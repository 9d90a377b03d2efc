package explore

import "testing"

// jobInstances are searched by the tests up to a bound, and further by make model.
var jobInstances = map[string]Jobs{
	"one node loses its data":                {Servers: 3, Callers: "aa", Losses: 1},
	"two nodes lose their data":              {Servers: 3, Callers: "aa", Losses: 2},
	"a node restarts without its last write": {Servers: 3, Callers: "aa", OldData: 1},
	"another occurrence in between":          {Servers: 3, Callers: "aba", Losses: 1},
	"callers look first":                     {Servers: 3, Callers: "aa", Losses: 1, Known: true, Tries: true},
	"one caller keeps records for less time": {Servers: 3, Callers: "Ba", Losses: 1, Known: true},
}

// TestNoRecordIsForgotten searches what can happen to the records of a job: no
// occurrence runs again as long as enough nodes have kept their records.
func TestNoRecordIsForgotten(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long")
	}
	for name, in := range jobInstances {
		in.States = 15_000
		if all {
			in.States = min(mostStates(), 1_000_000)
		}
		r := SearchJobs(in)
		if r.Bad != Fine {
			t.Errorf("%s: %s\n%s", name, r.Bad, r.Story)
		}
		t.Logf("%s: %d states, complete %v", name, r.States, r.Complete)
	}
}

// TestEveryRuleOfRecordsIsMissed switches each rule off, and has the search find
// what goes wrong.
func TestEveryRuleOfRecordsIsMissed(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long")
	}
	for name, in := range map[string]Jobs{
		"any quorum says that it is not completed":      {Servers: 3, Callers: "aa", Losses: 1, AnyQuorum: true},
		"a node with old data does not show it":         {Servers: 1, Callers: "aa", OldData: 1, SameServer: true},
		"a node does not say how long records are kept": {Servers: 3, Callers: "Ba", Losses: 1, Known: true, OwnRetention: true},
	} {
		in.States = 400_000
		r := SearchJobs(in)
		if r.Bad == Fine {
			t.Errorf("%s: nothing found in %d states", name, r.States)
			continue
		}
		t.Logf("%s: %s, %d steps, %d states\n%s", name, r.Bad, steps(r), r.States, r.Story)
	}
}
