package redlatch

import (
	"errors"
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
)

func TestQuorumIsTheSmallestMajority(t *testing.T) {
	for n, want := range map[int]int{1: 1, 2: 2, 3: 2, 4: 3, 5: 3, 6: 4, 7: 4, 15: 8} {
		if got := quorumOf(n); got != want {
			t.Errorf("quorum of %d nodes is %d, want %d", n, got, want)
		}
		if 2*quorumOf(n) <= n {
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
		if got := validityOf(c.ttl, c.elapsed); got != c.want {
			t.Errorf("validity of %v after %v is %v, want %v", c.ttl, c.elapsed, got, c.want)
		}
	}
}

// TestRoundIsWonOrHopelessNeverBoth counts every way in which the nodes of a
// round can answer, in every order of yes, no and silence.
func TestRoundIsWonOrHopelessNeverBoth(t *testing.T) {
	answers := []NodeResult{
		{Reply: node.Reply{Status: node.Granted}},
		{Reply: node.Reply{Status: node.Held}},
		{Err: errors.New("down")},
	}
	for n := 1; n <= 7; n++ {
		ways := 1
		for range n {
			ways *= len(answers)
		}
		for way := range ways {
			sum := tally{nodes: n}
			settled := false
			for w, i := way, 0; i < n; i, w = i+1, w/len(answers) {
				sum.count(answers[w%len(answers)])
				if sum.won() && sum.hopeless() {
					t.Fatalf("N=%d way %d: won and hopeless: %+v", n, way, sum)
				}
				if settled && !sum.won() && !sum.hopeless() {
					t.Fatalf("N=%d way %d: settled and then open again: %+v", n, way, sum)
				}
				settled = sum.won() || sum.hopeless()
			}
			if !settled {
				t.Fatalf("N=%d way %d: all answered and nothing settled: %+v", n, way, sum)
			}
			if sum.won() != (sum.granted > n/2) {
				t.Fatalf("N=%d way %d: won is %v with %d granted", n, way, sum.won(), sum.granted)
			}
		}
	}
}

func TestFloorIsWhatAQuorumCanAccept(t *testing.T) {
	const window = 10 * time.Second
	now := time.Now()
	at := func(d time.Duration) Token { return Token(now.Add(d).UnixMicro()) }
	n := func(s node.Status, clock time.Duration, fence Token) NodeResult {
		return NodeResult{Reply: node.Reply{Status: s, Now: now.Add(clock), Fence: fence}}
	}
	stale := func(ahead time.Duration) NodeResult { return n(node.Stale, 0, at(ahead)) }
	granted := n(node.Granted, 0, at(0))
	held := n(node.Held, 0, at(0))
	runaway := n(node.Stale, time.Hour, at(time.Hour))
	pending := NodeResult{Err: errPending}
	down := NodeResult{Err: errors.New("down")}
	for _, c := range []struct {
		what    string
		results []NodeResult
		want    Token // 0 for none
	}{
		{"one runaway node does not drag the rest along", []NodeResult{runaway, granted, granted}, at(0)},
		{"nor where the others are few", []NodeResult{runaway, held, granted}, 0},
		{"nor where they have not answered yet", []NodeResult{runaway, held, held, pending, pending}, 0},
		{"a quorum of fences does", []NodeResult{stale(time.Second), stale(2 * time.Second), held}, at(2*time.Second) + 1},
		{"the second lowest of three is enough", []NodeResult{stale(2 * time.Second), stale(3 * time.Second), stale(time.Second)}, at(2*time.Second) + 1},
		{"a node that another holds is out of the question", []NodeResult{granted, stale(time.Second), held}, at(time.Second) + 1},
		{"fences far ahead of clocks that were set back are leapt over", []NodeResult{stale(time.Hour), stale(time.Hour), stale(time.Hour)}, at(time.Hour) + 1},
		{"too few answers", []NodeResult{stale(time.Second), down, down}, 0},
	} {
		got, ok := floorAfter(c.results, quorumOf(len(c.results)), now, window)
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
				sum := tally{nodes: n, granted: granted, refused: refused, failed: n - granted - refused}
				lost := n-refused < quorumOf(n) // those that may have had it are no quorum
				freed := !lost && granted+refused >= quorumOf(n)
				if sum.lost() != lost || sum.freed() != freed {
					t.Errorf("%+v: freed %v, lost %v, want %v, %v", sum, sum.freed(), sum.lost(), freed, lost)
				}
				if sum.won() && !sum.freed() {
					t.Errorf("%+v: a quorum freed it, and it is not freed", sum)
				}
			}
		}
	}
}
