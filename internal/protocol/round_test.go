package protocol

import (
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
)

func TestQuorumIsTheSmallestMajority(t *testing.T) {
	for n, want := range map[int]int{1: 1, 2: 2, 3: 2, 4: 3, 5: 3, 6: 4, 7: 4, 15: 8} {
		if got := Quorum(n); got != want {
			t.Errorf("quorum of %d nodes is %d, want %d", n, got, want)
		}
		if 2*Quorum(n) <= n {
			t.Errorf("two quorums of %d nodes need not share one", n)
		}
	}
}

func TestValidityIsTTLLessElapsedLessDrift(t *testing.T) {
	for _, c := range []struct{ ttl, elapsed, want time.Duration }{
		{10 * time.Second, 0, 10*time.Second - 102*time.Millisecond},
		{10 * time.Second, 30 * time.Millisecond, 10*time.Second - 132*time.Millisecond},
		{10 * time.Millisecond, 0, 7900 * time.Microsecond},
		{10 * time.Millisecond, 8 * time.Millisecond, -100 * time.Microsecond},
	} {
		if got := Validity(c.ttl, c.elapsed); got != c.want {
			t.Errorf("validity of %v after %v is %v, want %v", c.ttl, c.elapsed, got, c.want)
		}
	}
}

// TestRoundIsWonOrHopelessNeverBoth counts every way in which the nodes of a
// round can answer, in every order of yes, no and silence.
func TestRoundIsWonOrHopelessNeverBoth(t *testing.T) {
	answers := []member{
		{got: Replied, status: node.Granted},
		{got: Replied, status: node.Held},
		{got: Failed},
	}
	for n := 1; n <= 7; n++ {
		ways := 1
		for range n {
			ways *= len(answers)
		}
		for way := range ways {
			c := Claim{cfg: Config{Nodes: n}}
			var sum Tally
			settled := false
			for w, i := way, 0; i < n; i, w = i+1, w/len(answers) {
				c.nodes[i] = answers[w%len(answers)]
				sum = c.tally()
				if sum.Won() && sum.hopeless() {
					t.Fatalf("N=%d way %d: won and hopeless: %+v", n, way, sum)
				}
				if settled && !sum.Won() && !sum.hopeless() {
					t.Fatalf("N=%d way %d: settled and then open again: %+v", n, way, sum)
				}
				settled = sum.Won() || sum.hopeless()
			}
			if !settled {
				t.Fatalf("N=%d way %d: all answered and nothing settled: %+v", n, way, sum)
			}
			if sum.Won() != (sum.Granted > n/2) {
				t.Fatalf("N=%d way %d: won is %v with %d granted", n, way, sum.Won(), sum.Granted)
			}
		}
	}
}

func TestFloorIsWhatAQuorumCanAccept(t *testing.T) {
	const window = 10 * time.Second
	now := time.Now()
	at := func(d time.Duration) node.Token { return node.Token(now.Add(d).UnixMicro()) }
	n := func(s node.Status, clock time.Duration, fence node.Token) member {
		return member{got: Replied, status: s, now: now.Add(clock).UnixMicro(), fence: fence}
	}
	stale := func(ahead time.Duration) member { return n(node.Stale, 0, at(ahead)) }
	granted := n(node.Granted, 0, at(0))
	held := n(node.Held, 0, at(0))
	runaway := n(node.Stale, time.Hour, at(time.Hour))
	pending := member{got: Pending}
	down := member{got: Failed}
	for _, c := range []struct {
		what    string
		results []member
		want    node.Token // 0 for none
		none    bool       // no node has a clock
	}{
		{"one runaway node does not drag the rest along", []member{runaway, granted, granted}, at(0), false},
		{"nor where the others are few", []member{runaway, held, granted}, 0, false},
		{"nor where they have not answered yet", []member{runaway, held, held, pending, pending}, 0, false},
		{"a quorum of fences does", []member{stale(time.Second), stale(2 * time.Second), held}, at(2*time.Second) + 1, false},
		{"the second lowest of three is enough", []member{stale(2 * time.Second), stale(3 * time.Second), stale(time.Second)}, at(2*time.Second) + 1, false},
		{"a node that another holds is out of the question", []member{granted, stale(time.Second), held}, at(time.Second) + 1, false},
		{"fences far ahead of clocks that were set back are leapt over", []member{stale(time.Hour), stale(time.Hour), stale(time.Hour)}, at(time.Hour) + 1, false},
		{"fences far ahead of each other have none in common", []member{stale(time.Hour), stale(2 * time.Hour)}, 0, false},
		{"unless no node has a clock", []member{stale(time.Hour), stale(2 * time.Hour)}, at(2*time.Hour) + 1, true},
		{"too few answers", []member{stale(time.Second), down, down}, 0, false},
	} {
		claim := Claim{cfg: Config{Nodes: len(c.results), Window: window}}
		copy(claim.nodes[:], c.results)
		got, ok := claim.floorAfter(clock{now, c.none})
		if got != c.want || ok != (c.want != 0) {
			t.Errorf("%s: floor is %d, %v, want %d", c.what, got, ok, c.want)
		}
	}
}

// TestReleaseIsFreedLostOrUnknown counts every way in which the nodes can answer
// a release: the name is free on a quorum, or no quorum had it at the end, or
// too few answered to say. Never two of them.
func TestReleaseIsFreedLostOrUnknown(t *testing.T) {
	for n := 1; n <= 7; n++ {
		for granted := 0; granted <= n; granted++ {
			for refused := 0; granted+refused <= n; refused++ {
				sum := Tally{Nodes: n, Granted: granted, Refused: refused, Failed: n - granted - refused}
				lost := n-refused < Quorum(n) // those that may have had it are no quorum
				freed := !lost && granted+refused >= Quorum(n)
				if sum.Lost() != lost || sum.Freed() != freed {
					t.Errorf("%+v: freed %v, lost %v, want %v, %v", sum, sum.Freed(), sum.Lost(), freed, lost)
				}
				if sum.Won() && !sum.Freed() {
					t.Errorf("%+v: a quorum freed it, and it is not freed", sum)
				}
			}
		}
	}
}
