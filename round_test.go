package redlatch

import (
	"errors"
	"testing"
	"time"
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
		{Reply: Reply{Status: Granted}},
		{Reply: Reply{Status: Held}},
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
	stale := func(f Token) NodeResult { return NodeResult{Reply: Reply{Status: Stale, Fence: f}} }
	granted := NodeResult{Reply: Reply{Status: Granted}}
	down := NodeResult{Err: errors.New("down")}
	for _, c := range []struct {
		what    string
		results []NodeResult
		want    Token
	}{
		{"one runaway fence does not drag the rest along", []NodeResult{stale(1 << 50), granted, granted}, 0},
		{"a quorum of fences does", []NodeResult{stale(7), stale(9), granted}, 8},
		{"all stale: the second lowest of three", []NodeResult{stale(7), stale(9), stale(5)}, 8},
		{"a node that another holds is out of the question", []NodeResult{granted, stale(7), {Reply: Reply{Status: Held}}}, 8},
		{"too few answers: nothing to go by", []NodeResult{stale(7), down, down}, 0},
	} {
		if got := floorAfter(c.results, quorumOf(len(c.results))); got != c.want {
			t.Errorf("%s: floor is %d, want %d", c.what, got, c.want)
		}
	}
}
