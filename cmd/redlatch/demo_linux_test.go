package main

import (
	"strings"
	"testing"
)

// TestDemoIsColouredOnATerminal has the whole demo run, through the command.
func TestDemoIsColouredOnATerminal(t *testing.T) {
	t.Parallel()
	const refusal, loss = "refuses A: token ", "balance 70: the 5 that B added are lost"
	t.Run("a terminal", func(t *testing.T) {
		t.Parallel()
		c := onTerminal(t, "env", "TERM=xterm", "NO_COLOR=", "redlatch", "demo", "--pace", "0")
		if shown := c.shows("shows the same"); !strings.Contains(shown, "   account  \x1b[32m"+refusal) {
			t.Errorf("it shows %q", shown)
		}
	})
	t.Run("NO_COLOR", func(t *testing.T) {
		t.Parallel()
		c := onTerminal(t, "env", "TERM=xterm", "NO_COLOR=1", "redlatch", "demo", "--pace", "0", "--no-fence")
		if shown := c.shows("shows the same"); !strings.Contains(shown, "   account  "+loss) || strings.Contains(shown, "\x1b") {
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

func TestDemoRefusesBadInput(t *testing.T) {
	t.Parallel()
	for says, args := range map[string][]string{
		"takes no argument":          {"demo", "quickly"},
		"--pace is -1s: must be 0":   {"demo", "--pace", "-1s"},
		"must be true or false":      {"demo", "--json=xml"},
		"unknown flag: --no-fencing": {"demo", "--no-fencing"},
	} {
		code, stdout, stderr := command(t, args...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, says) {
			t.Errorf("%q: exit %d, %s%s", args, code, stdout, stderr)
		}
	}
}
