package terminal

import "testing"

func TestColourHeedsNoColorAndTerminals(t *testing.T) {
	for _, c := range []struct {
		noColor, term string
		terminal      bool
		want          bool
	}{
		{"", "xterm", true, true}, {"", "", true, true}, {"1", "xterm", true, false},
		{"", "dumb", true, false}, {"", "xterm", false, false},
	} {
		if got := colourful(c.noColor, c.term, c.terminal); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
