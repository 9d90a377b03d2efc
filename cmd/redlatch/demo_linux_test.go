package main

import (
	"strings"
	"testing"
)

// TestDemoIsColouredOnATerminal has the whole demo run, through the command.
func TestDemoIsColouredOnATerminal(t *testing.T) {
	t.Parallel()
	const refusal = "refuses A: token "
	t.Run("a terminal", func(t *testing.T) {
		t.Parallel()
		c := onTerminal(t, "env", "TERM=xterm", "NO_COLOR=", "redlatch", "demo", "--pace", "0")
		if shown := c.shows("shows the same"); !strings.Contains(shown, "   account  \x1b[32m"+refusal) {
			t.Errorf("it shows %q", shown)
		}
	})
	t.Run("no terminal", func(t *testing.T) {
		t.Parallel()
		code, stdout, stderr := command(t, "demo", "--pace", "0")
		if code != 0 || stderr != "" || !strings.Contains(stdout, "\n   account  "+refusal) || strings.Contains(stdout, "\x1b") {
			t.Errorf("exit %d, %s%s", code, stdout, stderr)
		}
	})
}
