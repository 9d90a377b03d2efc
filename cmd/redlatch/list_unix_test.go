//go:build unix

package main

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

func TestListShowsWhereNodesDisagree(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 5)
	declareNew(t, servers)
	nodes := strings.Join(servertest.Addresses(servers), ",")
	handleOf(t, nodes, "whole", "--label", "shift")
	for _, s := range servers[:2] {
		s.Do("SET", "partly", strings.Repeat("0", 32)+":host/1/\x1b[31mred", "PX", "60000")
		s.Do("SET", "redlatch:1:fence:{partly}", "00001763000000123457", "PX", "60000")
	}
	code, stdout, stderr := command(t, "ls", "--nodes", nodes)
	if code != 0 || stderr != "" || !regexp.MustCompile(`(?m)^whole +held +\S+/shift .* 5/5$`).MatchString(stdout) ||
		!regexp.MustCompile(`(?m)^partly +split +\S+ .* 2/5$`).MatchString(stdout) {
		t.Errorf("ls: exit %d, %s%s", code, stdout, stderr)
	}
	if strings.Contains(stdout, "\x1b") {
		t.Errorf("what another wrote reached the terminal: %q", stdout)
	}
	code, stdout, _ = command(t, "show", "--nodes", nodes, "partly")
	if code != 0 || !strings.Contains(stdout, "split: no majority of the 5 nodes") || strings.Count(stdout, " -  ") < 3 || strings.Contains(stdout, "\x1b") {
		t.Errorf("show: exit %d, %s", code, stdout)
	}
	// One silent node is a warning; a silent majority sets the exit code.
	servers[0].Kill()
	code, stdout, stderr = command(t, "ls", "--nodes", nodes)
	if code != 0 || strings.Count(stderr, "does not answer") != 1 || !strings.Contains(stdout, "4/5") {
		t.Errorf("ls with a node away: exit %d, %s%s", code, stdout, stderr)
	}
	code, stdout, _ = command(t, "break", "--yes", "--nodes", nodes, "whole")
	if code != 0 || !strings.Contains(stdout, `"whole" is broken on 4 of 5 nodes`) || strings.Count(stdout, "refused") != 1 {
		t.Errorf("break with a node away: exit %d, %s", code, stdout)
	}
	handleOf(t, nodes, "whole")
	servers[1].Kill()
	servers[2].Kill()
	code, stdout, stderr = command(t, "ls", "--nodes", nodes)
	if code != exitNoQuorum || !strings.Contains(stdout, "2/5") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("ls without a quorum: exit %d, %s%s", code, stdout, stderr)
	}
	code, stdout, _ = command(t, "show", "--nodes", nodes, "nobody's")
	if code != exitNoQuorum || !strings.Contains(stdout, "unknown: only 2 of 5 nodes answer") || strings.Contains(stdout, "state    free") {
		t.Errorf("show without a quorum: exit %d, %s", code, stdout)
	}
	if code, stdout, _ = command(t, "show", "--json", "--nodes", nodes, "nobody's"); code != exitNoQuorum || !strings.Contains(stdout, `"state":"unknown"`) {
		t.Errorf("show --json without a quorum: exit %d, %s", code, stdout)
	}
	before := servers[3].Do("GET", "whole")
	code, _, stderr = command(t, "break", "--yes", "--nodes", nodes, "whole")
	if code != exitNoQuorum || servers[3].Do("GET", "whole") != before {
		t.Errorf("break without a quorum: exit %d, %s", code, stderr)
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
