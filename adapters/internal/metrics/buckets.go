package metrics

// The default limits of the histograms' buckets, in seconds.
var (
	// WaitBuckets are for waits: from a round trip to a few minutes.
	WaitBuckets = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}
	// HoldBuckets are for leases: from a short step to the default of MaxHold.
	HoldBuckets = []float64{0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 21600, 86400}
	// RoundBuckets are for answers of nodes: to the longest default of NodeTimeout.
	RoundBuckets = []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2}
)

// LostCauses are the causes for which a lease can be lost, as observe.Outcome
// names them.
var LostCauses = []string{"max_hold", "not_extended", "taken"}
