//go:build unix

package main

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
)

func TestListShowsWhereNodesDisagree(t *testing.T) {
	t.Parallel()
	servers := newQuorum(t, 5)
	nodes := these(servers...)
	handleOf(t, string(nodes), "whole", "--label", "shift")
	for _, s := range servers[:2] {
		s.Do("SET", "partly", strings.Repeat("0", 32)+":host/1/\x1b[31mred", "PX", "60000")
		s.Do("SET", "redlatch:1:fence:{partly}", "00001763000000123457", "PX", "60000")
	}
	list := nodes.run(t, 0, "ls").never("\x1b").lines(0)
	if !regexp.MustCompile(`(?m)^whole +held +\S+/shift .* 5/5$`).MatchString(list.stdout) || !regexp.MustCompile(`(?m)^partly +split +\S+ .* 2/5$`).MatchString(list.stdout) {
		t.Errorf("ls: %s", list.stdout)
	}
	if s := nodes.run(t, 0, "show partly").out("split: no majority of the 5 nodes").never("\x1b"); strings.Count(s.stdout, " -  ") < 3 {
		t.Errorf("show: %s", s.stdout)
	}
	// One silent node is a warning; a silent majority sets the exit code.
	servers[0].Kill()
	nodes.run(t, 0, "ls").out("4/5").err("does not answer").lines(1)
	nodes.run(t, 0, "break --yes whole").out(`"whole" is broken on 4 of 5 nodes`).times(1, "refused")
	handleOf(t, string(nodes), "whole")
	servers[1].Kill()
	servers[2].Kill()
	nodes.run(t, exitNoQuorum, "ls").out("2/5").lines(1)
	nodes.run(t, exitNoQuorum, "show nobody's").out("unknown: only 2 of 5 nodes answer").never("state    free")
	nodes.run(t, exitNoQuorum, "show --json nobody's").out(`"state":"unknown"`)
	before := servers[3].Do("GET", "whole")
	nodes.run(t, exitNoQuorum, "break --yes whole")
	if after := servers[3].Do("GET", "whole"); after != before {
		t.Errorf("break without a quorum has left %q", after)
	}
}

// TestStateGoesByThoseThatAnswer: a lock is split only if no majority can name
// one holder, even with the silent nodes.
func TestStateGoesByThoseThatAnswer(t *testing.T) {
	silent := errors.New("no answer")
	for _, c := range []struct {
		nodes string // a and b are holders, - is nobody, ? does not answer
		want  string
	}{
		{"aaa", "held"}, {"aa?", "held"}, {"a??", "unknown"}, {"a-?", "unknown"}, {"a--", "split"}, {"ab?", "unknown"}, {"aab--", "split"},
		{"aab-?", "unknown"}, {"ab--?", "split"}, {"---", "free"}, {"--?", "free"}, {"-??", "unknown"}, {"???", "unknown"}, {"--??", "unknown"},
	} {
		var l admin.LockState
		votes := map[rune]int{}
		for _, n := range c.nodes {
			var err error
			if n == '?' {
				err = silent
			}
			l.Nodes = append(l.Nodes, admin.NodeListing{Err: err})
			votes[n]++
		}
		for _, h := range "ab" {
			if votes[h] > 0 {
				l.Holders = append(l.Holders, redlatch.Holder{Owner: string(h), Nodes: votes[h]})
			}
		}
		l.Held = votes['a'] > len(c.nodes)/2
		if got := stateOf(&l); got != c.want {
			t.Errorf("%s is %s, want %s", c.nodes, got, c.want)
		}
	}
}
