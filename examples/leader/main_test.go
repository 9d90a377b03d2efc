//go:build unix

package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/processes"
	"github.com/redlatch/redlatch/node"
)

func TestMain(m *testing.M) { processes.Main(m, main) }

// leads waits until the process leads, and returns its token.
func leads(t *testing.T, p *processes.Process) redlatch.Token {
	t.Helper()
	text := strings.TrimPrefix(p.Line("leading, token "), "leading, token ")
	token, err := node.ParseToken(text)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestLeadershipPassesOnWithAHigherToken(t *testing.T) {
	servers, env := processes.Quorum(t, 3)
	a := processes.Start(t, "A", env, "-ttl", "2s")
	first := leads(t, a)
	b := processes.Start(t, "B", env, "-ttl", "30s")
	b.Line("following")

	a.Kill()
	second := leads(t, b)
	if second <= first {
		t.Errorf("after the leader died, token %d follows %d", second, first)
	}

	// B's lock would last for 30 s, so who leads before was handed it.
	c := processes.Start(t, "C", env, "-ttl", "2s")
	c.Line("following")
	b.Signal(syscall.SIGTERM)
	if code := b.Wait(); code != 0 {
		t.Errorf("B exits with %d: %s", code, b.Said())
	}
	third := leads(t, c)
	if third <= second {
		t.Errorf("after the hand-over, token %d follows %d", third, second)
	}

	for _, s := range servers[:2] {
		s.Freeze()
	}
	c.Line("no longer the leader")
	for _, s := range servers[:2] {
		s.Thaw()
	}
	if fourth := leads(t, c); fourth <= third {
		t.Errorf("after the outage, token %d follows %d", fourth, third)
	}
}
