package jobtest

import (
	"fmt"
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

// TestViolationsAreFound looks for those, and for what was due on b and nobody ran to
// the end.
func TestViolationsAreFound(t *testing.T) {
	for text, want := range map[string]string{
		"start a 0, end a 0, start b 2, end b 2":                                            "",
		"start a 0, killed a 0, start b 0, end b 0, tick b 2":                               " 2",
		"start a 0, start b 2, killed a 0":                                                  "overlap",
		"start a 0, killed b 0, start b 2":                                                  "overlap",
		"start a 0, end a 0, killed a 0, start b 0":                                         "twice",
		"start a 0, end a 0, start b 1, end b 1":                                            "off",
		"early a 2, start a 2, end a 2":                                                     "early",
		"tick a 0, tick b 0, start a 0, killed a 0, tick b 2, start b 2, end b 2, tick a 4": " 0",
	} {
		got := strings.Join(violations(history(text)), "; ")
		for _, due := range missing(history(text), "b") {
			got += fmt.Sprintf(" %d", due.Second())
		}
		if want == "" && got != "" || !strings.Contains(got, want) || want[:min(1, len(want))] == " " && got != want {
			t.Errorf("%s: found %q, want %q", text, got, want)
		}
	}
}
