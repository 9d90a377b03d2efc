//go:build unix

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

// on are the addresses of nodes.
type on string

func these(servers ...*servertest.Server) on {
	return on(strings.Join(servertest.Addresses(servers), ","))
}

// run runs a command on the nodes, and checks its exit code. The line begins with
// the verb, and nothing in it is quoted.
func (nodes on) run(t testing.TB, code int, line string) said {
	t.Helper()
	got, stdout, stderr := command(t, slices.Insert(strings.Fields(line), 1, "--nodes", string(nodes))...)
	if got != code {
		t.Errorf("%s: exit %d, want %d: %s%s", line, got, code, stdout, stderr)
	}
	return said{t, line, stdout, stderr}
}

// said is what a command wrote.
type said struct {
	t                    testing.TB
	line, stdout, stderr string
}

// out checks that stdout has all of the texts, err that stderr has them, and never
// that neither has one.
func (s said) out(texts ...string) said { s.t.Helper(); return s.check(s.stdout, texts, true) }
func (s said) err(texts ...string) said { s.t.Helper(); return s.check(s.stderr, texts, true) }
func (s said) never(texts ...string) said {
	s.t.Helper()
	return s.check(s.stdout+s.stderr, texts, false)
}

func (s said) check(where string, texts []string, want bool) said {
	s.t.Helper()
	for _, text := range texts {
		if strings.Contains(where, text) != want {
			s.t.Errorf("%s: %s%s; that it says %q should be %v", s.line, s.stdout, s.stderr, text, want)
		}
	}
	return s
}

// times checks how often stdout has a text, and lines how many lines stderr has.
func (s said) times(n int, text string) said { s.t.Helper(); return s.count(s.stdout, text, n) }
func (s said) lines(n int) said              { s.t.Helper(); return s.count(s.stderr, "\n", n) }

func (s said) count(where, text string, want int) said {
	s.t.Helper()
	if n := strings.Count(where, text); n != want {
		s.t.Errorf("%s: %s%s; it says %q %d times, want %d", s.line, s.stdout, s.stderr, text, n, want)
	}
	return s
}
