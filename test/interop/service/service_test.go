//go:build unix

package service

import (
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"
)

// TestMain keeps go-redis from logging that killed servers cannot be reached.
func TestMain(m *testing.M) {
	logging.Disable()
	os.Exit(m.Run())
}

// TestRedsyncAndRedlatchShareAQuorumWhileServersAreKilledAndRestarted lets no
// server forget anything. Then redsync's own rules allow no overlap, and
// neither do ours. make interop runs it for longer, and once more with servers
// that forget.
func TestRedsyncAndRedlatchShareAQuorumWhileServersAreKilledAndRestarted(t *testing.T) {
	t.Parallel()
	r := Run(t, Config{For: 15 * time.Second, Trouble: Kept})
	t.Log(r)
	for _, o := range r.Overlaps {
		t.Error(o)
	}
	if !r.Enough() {
		t.Errorf("too little to judge by: %v", r)
	}
}

// TestServicesThatDoNotSeeEachOtherAreFoundOut is the same run with redsync on
// another key, where the judge must find overlaps.
func TestServicesThatDoNotSeeEachOtherAreFoundOut(t *testing.T) {
	t.Parallel()
	r := Run(t, Config{For: 3 * time.Second, Trouble: Kept, elsewhere: "-not"})
	seen := map[string]bool{}
	for _, o := range r.Overlaps {
		seen[o.Second] = true
	}
	if !seen["redlatch"] || !seen["redsync"] {
		t.Errorf("the judge sees %v", r)
	}
}

// TestJudgeSeesWhoCameSecond tests every order of two holds.
func TestJudgeSeesWhoCameSecond(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	for what, c := range map[string]struct {
		holds []hold
		want  []Overlap
	}{
		"one after the other": {[]hold{{"a", at(0), at(10)}, {"b", at(10), at(20)}}, nil},
		"the second comes early": {[]hold{{"b", at(9), at(20)}, {"a", at(0), at(10)}},
			[]Overlap{{"a", "b", time.Millisecond}}},
		"one inside the other": {[]hold{{"a", at(0), at(100)}, {"b", at(10), at(20)}, {"c", at(30), at(40)}},
			[]Overlap{{"a", "b", 10 * time.Millisecond}, {"a", "c", 10 * time.Millisecond}}},
		"a hold of no time is none":    {[]hold{{"a", at(0), at(100)}, {"b", at(10), at(10)}}, nil},
		"ended before it was returned": {[]hold{{"a", at(0), at(100)}, {"b", at(10), at(5)}}, nil},
	} {
		got := judge(c.holds)
		if len(got) != len(c.want) {
			t.Errorf("%s: %v, want %v", what, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: %v, want %v", what, got[i], c.want[i])
			}
		}
	}
}
