package terminal

import (
	"slices"
	"testing"
)

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

func TestDigitsThatTokensShareAreApart(t *testing.T) {
	last := ""
	for _, c := range [][]string{
		{"token ", "", "00001795050530487172  is the first"},
		{"nothing about 1795050530"},
		{"refuses ", "000017950505", "24414065, older than ", "000017950505", "33510913"},
	} {
		text := ""
		for _, part := range c {
			text += part
		}
		if got := Apart(text, &last); !slices.Equal(got, c) {
			t.Errorf("%q is %q, want %q", text, got, c)
		}
	}
}
