package jobtest

import (
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)

// history makes events of texts like "start a 0", with the seconds after noon.
func history(text string) (events []Event) {
	for line := range strings.SplitSeq(text, ", ") {
		w := strings.Fields(line)
		events = append(events, Event{w[0], w[1], noon.Add(time.Duration(w[2][0]-'0') * time.Second)})
	}
	return events
}

func TestViolationsAreFound(t *testing.T) {
	for text, want := range map[string]string{
		"start a 0, end a 0, start b 2, end b 2":              "",
		"start a 0, start b 2, end a 0, end b 2":              "overlap",
		"start a 0, start b 0":                                "overlap",
		"start a 0, end a 0, start b 0, end b 0":              "twice",
		"start a 0, end a 0, start a 0":                       "twice",
		"start a 0, killed a 0, start b 0, end b 0":           "",
		"start a 0, start b 2, killed a 0":                    "overlap",
		"start a 0, killed b 0, start b 2":                    "overlap",
		"start a 0, end a 0, killed a 0, start b 0":           "twice",
		"start a 0, end a 0, start b 1, end b 1":              "off",
		"early a 2, start a 2, end a 2":                       "early",
		"tick a 0, tick b 0, start a 0, end a 0, start b 2":   "",
		"start a 0, killed a 0, start b 0, end b 0, tick b 2": "",
	} {
		got := strings.Join(violations(history(text)), "; ")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: violations %q, want %q", text, got, want)
		}
	}
}

func TestWhatNobodyRanToTheEndIsmissing(t *testing.T) {
	events := history("tick a 0, tick b 0, start a 0, killed a 0, tick b 2, start b 2, end b 2, tick a 4")
	if got := missing(events, "b"); len(got) != 1 || !got[0].Equal(noon) {
		t.Errorf("missing %v, want %v", got, noon)
	}
	if got := missing(events, "a"); len(got) != 2 {
		t.Errorf("missing %v, want two", got)
	}
	if n := count(events, Tick, ""); n != 4 {
		t.Errorf("%d ticks, want 4", n)
	}
}
