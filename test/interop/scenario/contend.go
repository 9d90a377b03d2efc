//go:build unix

package scenario

import (
	"time"

	"github.com/redlatch/redlatch/test/interop/beside"
)

const (
	// contendFor is how long both sides contend at least.
	contendFor = 2 * time.Second
	// contendTTL is far above the time of one hold, and short enough that keys
	// left behind by a failed try expire during the run.
	contendTTL = 3 * time.Second
	// turnsEach is how often each side must have had the lock.
	turnsEach = 5
)

// contention: two of each side want one lock, and no two have it at once.
func contention(s *Stage) Cell {
	second, err := s.process()
	s.must(err == nil, "does not start: %v", err)
	defer second.Kill()
	j := beside.NewJudge(s.name, s.servers)
	j.NoFences = true // a foreign client has none
	c := beside.Contest{Judge: j, Name: s.name, TTL: contendTTL, For: contendFor, Limit: soon, Turns: turnsEach,
		Sides: map[string][]beside.Contender{
			"it":       {&beside.Foreign{Process: s.it}, &beside.Foreign{Process: second}},
			"redlatch": {&beside.Client{Client: s.locks}, &beside.Client{Client: s.other}},
		}}
	c.Play()
	s.must(len(j.Faults()) == 0, "has the lock while redlatch has it")
	theirs, ours := j.Turns("it"), j.Turns("redlatch")
	s.weMust(ours >= turnsEach, "had the lock %d times in %v, the other %d times", ours, soon, theirs)
	s.must(theirs >= turnsEach, "had the lock %d times in %v, redlatch %d times", theirs, soon, ours)
	return Cell{Holds, "never two"}
}
