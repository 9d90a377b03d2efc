package protocol

import (
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
)

// guardOf returns the parameters of a marker, with the quarantine that they ask
// for.
func guardOf(list string, maxTTL time.Duration, generation uint64) node.Guard {
	const window = 10 * time.Second
	return node.Guard{Membership: list, MaxTTL: maxTTL, Window: window, Quarantine: Quarantine(maxTTL, window, 0), Generation: generation}
}

func TestParametersAreAdoptedFromMarkersOfTheSameMembership(t *testing.T) {
	mine := guardOf("a", 30*time.Second, 1)
	longer, longest := guardOf("a", time.Minute, 1), guardOf("a", time.Hour, 1)
	later, earlier := guardOf("a", 40*time.Second, 2), guardOf("a", time.Minute, 0)
	short := longer
	short.Quarantine = time.Second
	for name, c := range map[string]struct {
		theirs []node.Guard
		fixed  Fixed
		want   node.Guard
	}{
		"no marker":                    {nil, Fixed{}, mine},
		"the same":                     {[]node.Guard{mine}, Fixed{}, mine},
		"the first that differs":       {[]node.Guard{mine, longer, longest}, Fixed{}, longer},
		"then a higher generation":     {[]node.Guard{longer, later, longest}, Fixed{}, later},
		"a lower generation":           {[]node.Guard{earlier}, Fixed{}, mine},
		"another membership":           {[]node.Guard{guardOf("b", time.Minute, 1)}, Fixed{}, mine},
		"a quarantine that is too low": {[]node.Guard{short}, Fixed{}, mine},
		"set by the caller":            {[]node.Guard{longer}, Fixed{MaxTTL: true}, mine},
	} {
		if got, matter := AdoptedFrom(mine, c.theirs, c.fixed); got != c.want || matter != (len(c.theirs) > 0 && c.theirs[0].Membership == "a") {
			t.Errorf("%s: %+v, they matter: %v, want %+v", name, got, matter, c.want)
		}
	}
}

func TestMarkersAgreeWhenAQuorumHasTheSame(t *testing.T) {
	a, b := guardOf("a", time.Minute, 1), guardOf("a", time.Hour, 1)
	named := a
	named.Nodes = "one two three"
	for name, c := range map[string]struct {
		markers []node.Guard
		nodes   int
		want    bool
	}{
		"none":                      {nil, 3, false},
		"one of three":              {[]node.Guard{a}, 3, false},
		"one of one":                {[]node.Guard{a}, 1, true},
		"two that differ":           {[]node.Guard{a, b}, 3, false},
		"two of three":              {[]node.Guard{a, b, a}, 3, true},
		"two of four":               {[]node.Guard{a, a}, 4, false},
		"the text does not matter":  {[]node.Guard{a, named}, 3, true},
		"a quorum is of all asked":  {[]node.Guard{a, a}, 5, false},
		"three of five with others": {[]node.Guard{b, a, b, a, a}, 5, true},
	} {
		if got, ok := AgreedMarker(c.markers, c.nodes); ok != c.want || ok && got.MaxTTL != a.MaxTTL {
			t.Errorf("%s: %v, %v, want %v", name, got, ok, c.want)
		}
	}
}

func TestMembershipChangeIsMissedByALowerGeneration(t *testing.T) {
	mine := guardOf("a", time.Minute, 2)
	older, other := guardOf("a", time.Minute, 1), guardOf("b", time.Minute, 1)
	off := mine
	off.Off = true
	for name, c := range map[string]struct {
		mine   node.Guard
		status node.Status
		theirs *node.Guard
		want   bool
	}{
		"older":              {mine, node.Misconfigured, &older, true},
		"the same":           {mine, node.Misconfigured, &mine, false},
		"another membership": {mine, node.Misconfigured, &other, false},
		"no marker":          {mine, node.Misconfigured, nil, false},
		"not refused":        {mine, node.Granted, &older, false},
		"the guard is off":   {off, node.Misconfigured, &older, false},
	} {
		if got := MissedChange(c.mine, &node.Reply{Status: c.status, Marker: node.Marker{Guard: c.theirs}}); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestMarkersShowService(t *testing.T) {
	g := guardOf("a", time.Minute, 1)
	for name, c := range map[string]struct {
		marker MarkerState
		want   bool
	}{
		"none":                    {MarkerState{}, false},
		"first seen a moment ago": {MarkerState{Marked: &g, Left: time.Minute, Reason: node.ReasonNew}, false},
		"trusted":                 {MarkerState{Marked: &g, Trusted: true}, true},
		"restarted":               {MarkerState{Marked: &g, Left: time.Minute, Reason: node.ReasonChanged}, true},
	} {
		d, _ := Declare([]Seen{{Answered: true}, See(&g, c.marker, true, "", 0)}, false)
		if got := BeenInService(c.marker); got != c.want || (d == UsedBefore) != got {
			t.Errorf("%s: %v, declared new: %v, want %v", name, got, d, c.want)
		}
	}
}

func TestGrantsAndHoldersShowService(t *testing.T) {
	for _, c := range []struct {
		op     node.Op
		status node.Status
		want   bool
	}{
		{node.OpAcquire, node.Granted, true}, {node.OpAcquire, node.Held, true}, {node.OpAcquire, node.Quarantined, false},
		{node.OpExtend, node.Granted, true}, {node.OpExtend, node.Absent, false}, {node.OpRepair, node.Granted, true},
		{node.OpRelease, node.Granted, false}, {node.OpMark, node.Granted, false},
	} {
		if got := ShowsService(c.op, c.status); got != c.want {
			t.Errorf("%v, %v: %v, want %v", c.op, c.status, got, c.want)
		}
	}
}

func TestClockIsWrongByTheMedianOfThreeOrMore(t *testing.T) {
	const window, off = 10 * time.Second, 6 * time.Second
	for name, c := range map[string]struct {
		offsets []time.Duration
		known   Set
		wrong   Set
		judged  bool
	}{
		"all agree":              {[]time.Duration{0, 0, 0}, All(3), 0, true},
		"one is ahead":           {[]time.Duration{0, off, 0}, All(3), Of(1), true},
		"one is behind":          {[]time.Duration{0, 0, -off}, All(3), Of(2), true},
		"all are ahead of ours":  {[]time.Duration{off, off, off}, All(3), 0, true},
		"two are not judged":     {[]time.Duration{0, off}, All(2), 0, false},
		"two of three are known": {[]time.Duration{0, off, 0}, Of(0) | Of(1), 0, false},
		"three of seven":         {[]time.Duration{0, off, 0, 0, 0, 0, 0}, All(3), 0, false},
		"three of five":          {[]time.Duration{0, off, 0, off, off}, All(3), Of(1), true},
	} {
		if wrong, judged := WrongClocks(c.offsets, c.known, window); wrong != c.wrong || judged != c.judged {
			t.Errorf("%s: %b, %v, want %b, %v", name, wrong, judged, c.wrong, c.judged)
		}
	}
}

func TestProbesAreFewOrFarBetween(t *testing.T) {
	const patience = time.Second
	for _, c := range []struct {
		probes int
		since  time.Duration
		want   bool
	}{
		{0, 0, true}, {maxProbes - 1, 0, true}, {maxProbes, 0, false},
		{maxProbes, 4*patience - 1, false}, {maxProbes, 4 * patience, true},
	} {
		if got := MayProbe(c.probes, c.since, patience); got != c.want {
			t.Errorf("%d in flight, the last since %v: %v, want %v", c.probes, c.since, got, c.want)
		}
	}
}

func TestCallersAskBesideAnotherInAShortage(t *testing.T) {
	for name, c := range map[string]struct {
		tally     Tally
		want      Shortage
		unbounded bool // an unbounded caller asks beside
		bounded   bool // and one with a limit
	}{
		"all granted":           {Tally{Nodes: 3, Granted: 3}, NoShortage, false, false},
		"one is down":           {Tally{Nodes: 3, Refused: 2, Failed: 1}, NoShortage, false, false},
		"two are down":          {Tally{Nodes: 3, Refused: 1, Failed: 2}, Outage, true, false},
		"two are quarantined":   {Tally{Nodes: 3, Granted: 1, Refused: 2, Unfit: 2, Quarantined: 2}, Quarantines, true, true},
		"two have to be marked": {Tally{Nodes: 3, Granted: 1, Refused: 2, Unfit: 2}, Outage, true, false},
	} {
		got := c.tally.Shortage()
		if got != c.want || got.AsksBeside(true) != c.unbounded || got.AsksBeside(false) != c.bounded {
			t.Errorf("%s: %v, beside it ask %v and %v", name, got, got.AsksBeside(true), got.AsksBeside(false))
		}
	}
}

func TestServerWithALowerEpochHasFailedBackAndIsNotTrusted(t *testing.T) {
	for epoch, want := range map[uint64]bool{0: true, 4: false, 5: true, 6: true} {
		if got := Believed(MarkerState{Trusted: true, Left: 1}, epoch, 5); got.Trusted != want || got.Left > 0 != want {
			t.Errorf("epoch %d, where 5 is known: %+v, want trust: %v", epoch, got, want)
		}
	}
}

func TestClaimExpectsWhatNodesAccept(t *testing.T) {
	base := time.UnixMicro(1_700_000_000_000_000)
	for _, now := range []time.Time{base, base.Add(999), time.Unix(1, 0), time.Unix(0, 0), time.Unix(-60, 0)} {
		for _, window := range []time.Duration{0, time.Microsecond, 1500, time.Second, 10 * time.Second} {
			clock := max(now.UnixMicro(), 1)
			for _, ahead := range []time.Duration{-time.Hour, -window, 0, window, time.Hour} {
				for _, fence := range []node.Token{0, node.Token(max(clock+ahead.Microseconds(), 1))} {
					least, most := accepts(fence, now, window)
					if least > most {
						t.Fatalf("fence %d at %v, window %v: from %d to %d", fence, now, window, least, most)
					}
					for _, edge := range []node.Token{1, fence, least, most, node.Token(clock)} {
						for token := max(edge, 3) - 2; token <= edge+2; token++ {
							granted := node.Judge(token, fence, now, window) == node.Granted
							if accepted := least <= token && token <= most; granted != accepted {
								t.Errorf("token %d, fence %d at %v, window %v: granted is %v, from %d to %d", token, fence, now, window, granted, least, most)
							}
						}
					}
				}
			}
		}
	}
}
