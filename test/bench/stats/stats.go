// Package stats computes statistics of measured times, and of who held a lock
// when.
package stats

import (
	"math"
	"slices"
	"time"
)

// Quantile returns the q-th quantile of sorted times: the smallest time that at
// least a share of q does not exceed. Of none it is 0.
func Quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// Summary is a distribution of times.
type Summary struct {
	Count            int
	Median, P99, Max time.Duration
}

// Summarize sorts the times and sums them up.
func Summarize(times []time.Duration) Summary {
	slices.Sort(times)
	return Summary{len(times), Quantile(times, 0.5), Quantile(times, 0.99), Quantile(times, 1)}
}

// Median returns the median of numbers; of none it is 0.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

// Jain returns Jain's fairness index of shares: 1 if all have the same, 1/n if
// one has everything, 0 if nobody has anything.
func Jain(shares []int) float64 {
	var sum, squares float64
	for _, s := range shares {
		sum += float64(s)
		squares += float64(s) * float64(s)
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(shares)) * squares)
}
