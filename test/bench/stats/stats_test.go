package stats

import (
	"testing"
	"time"
)

func TestQuantilesOfAHundredAreItsMembers(t *testing.T) {
	var times []time.Duration
	for i := 100; i >= 1; i-- {
		times = append(times, time.Duration(i))
	}
	if s := Summarize(times); s != (Summary{Count: 100, Median: 50, P99: 99, Max: 100}) {
		t.Fatalf("got %+v", s)
	}
	if s := Summarize(nil); s != (Summary{}) {
		t.Fatalf("of nothing: got %+v", s)
	}
	if s := Summarize([]time.Duration{7}); s != (Summary{1, 7, 7, 7}) {
		t.Fatalf("of one: got %+v", s)
	}
}

func TestMedianOfAnEvenNumberLiesBetween(t *testing.T) {
	if even, odd := Median([]float64{4, 1, 3, 2}), Median([]float64{9, 1, 3}); even != 2.5 || odd != 3 {
		t.Fatalf("got %v and %v", even, odd)
	}
}

func TestJainIsOneForEqualSharesAndLeastForOneWinner(t *testing.T) {
	for _, c := range []struct {
		shares []int
		want   float64
	}{
		{[]int{5, 5, 5, 5}, 1}, {[]int{20, 0, 0, 0}, 0.25}, {[]int{3, 1}, 0.8}, {[]int{0, 0}, 0}, {nil, 0},
	} {
		if got := Jain(c.shares); got != c.want {
			t.Errorf("Jain(%v) = %v, want %v", c.shares, got, c.want)
		}
	}
}
