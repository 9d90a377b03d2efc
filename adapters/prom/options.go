package redlatchprom

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/adapters/internal/metrics"
)

// Options are the settings of a Collector. The zero value works.
type Options struct {
	// Label returns the label of a lock's name. Names with a key in them need
	// one label for all keys. Names whose label is "" have the label "(other)".
	// It runs for every request, and must be quick. Defaults to
	// observe.NamePattern.
	Label func(name string) string

	// MaxLabels is how many labels there may be. Names beyond have the label
	// "(other)". A label has some 45 series. Defaults to 100.
	MaxLabels int

	// ConstLabels are put on every series, as "cluster" may be if the process
	// has a Collector for each of two quorums. Defaults to none.
	ConstLabels prometheus.Labels

	// WaitBuckets, HoldBuckets and RoundBuckets are the upper limits of the
	// histograms' buckets, in seconds and in order: for waits, for leases, and
	// for the answers of nodes. Default to 1 ms to 5 minutes, 10 ms to 24 hours,
	// and 0.1 ms to 2 s.
	WaitBuckets, HoldBuckets, RoundBuckets []float64
}

// withDefaults returns o with every unset field set, or an error for the first
// field that is not valid.
func (o Options) withDefaults() (Options, error) {
	for _, f := range []struct {
		name  string
		value *[]float64
		deflt []float64
	}{
		{"WaitBuckets", &o.WaitBuckets, metrics.WaitBuckets},
		{"HoldBuckets", &o.HoldBuckets, metrics.HoldBuckets},
		{"RoundBuckets", &o.RoundBuckets, metrics.RoundBuckets},
	} {
		if *f.value == nil {
			*f.value = f.deflt
		}
		if err := checkBuckets(f.name, *f.value); err != nil {
			return o, err
		}
	}
	return o, nil
}

func checkBuckets(field string, limits []float64) error {
	for i, limit := range limits {
		if !(limit > 0) || i > 0 && limit <= limits[i-1] {
			return &redlatch.ConfigError{Field: field, Value: limits, Bound: fmt.Sprintf("above 0 and in order: %v is not", limit)}
		}
	}
	if len(limits) == 0 {
		return &redlatch.ConfigError{Field: field, Value: limits, Bound: "nil, or one limit at least"}
	}
	return nil
}
