package main

import (
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

func TestTrustingAtOnceIsAskedForOnATerminal(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 3)
	nodes := strings.Join(servertest.Addresses(servers), ",")
	for _, c := range []struct {
		answer, shows string
		code          int
	}{{"n\n", "nothing was changed", 130}, {ctrlC, "nothing was changed", 130}, {"y\n", "trusted;", 0}} {
		term := onTerminal(t, "redlatch", "init", "--assume-fresh", "--nodes", nodes)
		question := term.shows("[y/N]")
		if !strings.Contains(question, "there will be two") {
			t.Errorf("the question does not name the danger: %q", question)
		}
		term.types(c.answer)
		term.shows(c.shows)
		if code := exitCode(t, term.cmd.Wait()); code != c.code {
			t.Errorf("answer %q: exit %d, want %d", c.answer, code, c.code)
		}
	}
}

func TestInitThatIsInterruptedLeavesTheNodesToTheirQuarantine(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 3)
	// Nodes that do not answer in time are not waited for: init has to be run again.
	const again = `trap : INT; while redlatch init --nodes $0; code=$?; [ $code = 69 ]; do :; done; exit $code`
	c := onTerminal(t, "env", "TERM=xterm", "NO_COLOR=1", "sh", "-c", again, strings.Join(servertest.Addresses(servers), ","))
	c.shows("redlatch: waiting for 3 nodes [")
	c.types(ctrlC)
	c.shows("stopped waiting: the nodes are marked")
	if code := exitCode(t, c.cmd.Wait()); code != 130 {
		t.Errorf("exit %d, want 130", code)
	}
	if marker := servers[0].Do("GET", "redlatch:1:marker"); !strings.Contains(marker, " new ") {
		t.Errorf("the node is marked %q", marker)
	}
}
