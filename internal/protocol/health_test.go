package protocol

import (
	"testing"
	"time"
)

func TestSuspectsAreNoneWithoutAQuorumOfOthers(t *testing.T) {
	const patience, now = 250 * time.Millisecond, time.Hour
	well, late, failing := Health{}, Health{Failing: true, Late: true}, Health{Failing: true}
	hanging := Health{InFlight: true, Since: now - patience}
	asked := Health{InFlight: true, Since: now - patience + 1}
	for name, c := range map[string]struct {
		nodes []Health
		want  Set
	}{
		"all well":                   {[]Health{well, well, asked}, 0},
		"one late":                   {[]Health{late, well, well}, Of(0)},
		"one hangs":                  {[]Health{well, well, hanging}, Of(2)},
		"one refuses":                {[]Health{failing, well, well}, 0},
		"one late and one refuses":   {[]Health{late, failing, well}, 0},
		"two of five":                {[]Health{late, hanging, well, well, well}, Of(0) | Of(1)},
		"three of five":              {[]Health{late, hanging, failing, well, well}, 0},
		"the only one":               {[]Health{late}, 0},
		"one of two is not a quorum": {[]Health{well, hanging}, 0},
	} {
		if got := Suspects(c.nodes, now, patience); got != c.want {
			t.Errorf("%s: %b, want %b", name, got, c.want)
		}
	}
}

func TestASlowAnswerDoesNotMoveAKnownOffset(t *testing.T) {
	for _, c := range []struct{ known, least, most, want time.Duration }{
		{0, -time.Second, time.Second, 0},
		{0, 2, 5, 2},
		{9, 2, 5, 5},
		{3, 2, 5, 3},
	} {
		if got := Offset(c.known, c.least, c.most); got != c.want {
			t.Errorf("Offset(%v, %v, %v) = %v, want %v", c.known, c.least, c.most, got, c.want)
		}
	}
}
