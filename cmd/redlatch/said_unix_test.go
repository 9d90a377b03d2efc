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

// out checks that stdout has all of the texts.
func (s said) out(texts ...string) said {
	s.t.Helper()
	return s.has(s.stdout, texts)
}

// err checks that stderr has all of the texts.
func (s said) err(texts ...string) said {
	s.t.Helper()
	return s.has(s.stderr, texts)
}

func (s said) has(where string, texts []string) said {
	s.t.Helper()
	for _, text := range texts {
		if !strings.Contains(where, text) {
			s.t.Errorf("%s: %s%s, and %q is not where it should be", s.line, s.stdout, s.stderr, text)
		}
	}
	return s
}

// never checks that nothing has one of the texts.
func (s said) never(texts ...string) said {
	s.t.Helper()
	for _, text := range texts {
		if strings.Contains(s.stdout+s.stderr, text) {
			s.t.Errorf("%s: %s%s, with %q", s.line, s.stdout, s.stderr, text)
		}
	}
	return s
}

// times checks how often stdout has a text, and lines how many lines stderr has.
func (s said) times(n int, text string) said {
	s.t.Helper()
	if strings.Count(s.stdout, text) != n {
		s.t.Errorf("%s: %s%s, without %d times %q", s.line, s.stdout, s.stderr, n, text)
	}
	return s
}

func (s said) lines(n int) said {
	s.t.Helper()
	if strings.Count(s.stderr, "\n") != n {
		s.t.Errorf("%s: stderr is %q", s.line, s.stderr)
	}
	return s
}
