package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/test/bench/measure"
	"github.com/redlatch/redlatch/test/bench/stats"
)

// figure is a number of a result, as tables show it and bounds are about it. of
// returns it for each round, if it is known for each.
type figure struct {
	head   string
	of     func(*measure.Result) []float64
	format func(float64) string
}

// one is a figure that is a number, long one that is a time.
func one(head string, format func(float64) string, of func(*measure.Result) float64) figure {
	return figure{head, func(x *measure.Result) []float64 { return []float64{of(x)} }, format}
}

func long(head string, of func(*measure.Result) time.Duration) figure {
	return one(head, func(f float64) string { return Short(time.Duration(f)) }, func(x *measure.Result) float64 { return float64(of(x)) })
}

// times is a figure that is a time in each round.
func times(head string, of func(*measure.Result) []float64) figure {
	return figure{head, of, func(f float64) string { return Short(time.Duration(f)) }}
}

// perCommand is how many acquisitions there are for a command to a server: at
// least so many passes has a round that the servers confirmed.
func perCommand(x *measure.Result) float64 {
	if x.Commands == 0 {
		return 0
	}
	return float64(x.Nodes) / x.Commands
}

// figures are by name.
var figures = map[string]figure{
	"pair":          long("median", func(x *measure.Result) time.Duration { return x.Pair.Median }),
	"pair-p99":      long("p99", func(x *measure.Result) time.Duration { return x.Pair.P99 }),
	"pair-max":      long("longest", func(x *measure.Result) time.Duration { return x.Pair.Max }),
	"pairs":         one("pairs", Count, func(x *measure.Result) float64 { return float64(x.Pair.Count) }),
	"wait":          long("wait, median", func(x *measure.Result) time.Duration { return x.Wait.Median }),
	"wait-p99":      long("wait, p99", func(x *measure.Result) time.Duration { return x.Wait.P99 }),
	"wait-max":      long("wait, longest", func(x *measure.Result) time.Duration { return x.Wait.Max }),
	"over":          long("hand-over, median", func(x *measure.Result) time.Duration { return x.HandOver.Median }),
	"over-p99":      long("hand-over, p99", func(x *measure.Result) time.Duration { return x.HandOver.P99 }),
	"held":          long("held, median", func(x *measure.Result) time.Duration { return x.Hold.Median }),
	"rate":          {"a second", func(x *measure.Result) []float64 { return x.Rates }, Count},
	"hand-overs":    {"hand-overs a second", func(x *measure.Result) []float64 { return x.HandOverRates }, Count},
	"first":         {"a second, first tenth", func(x *measure.Result) []float64 { return x.Rates[:min(len(x.Rates), 1)] }, Count},
	"last":          {"last tenth", func(x *measure.Result) []float64 { return x.Rates[max(len(x.Rates)-1, 0):] }, Count},
	"drain":         one("handed over a second", Count, func(x *measure.Result) float64 { return x.Kept.Drain }),
	"drain-sent":    one("commands a hand-over", Digits, func(x *measure.Result) float64 { return x.Kept.DrainCommands }),
	"per-command":   one("acquisitions a command and server", Digits, func(x *measure.Result) float64 { return perCommand(x) }),
	"healthy":       times("before, median", func(x *measure.Result) []float64 { return x.Freeze.Healthy }),
	"healthy-mean":  times("before, mean", func(x *measure.Result) []float64 { return x.Freeze.Mean }),
	"frozen-first":  times("first 20 after, mean", func(x *measure.Result) []float64 { return x.Freeze.First }),
	"frozen-after":  times("later, median", func(x *measure.Result) []float64 { return x.Freeze.After }),
	"frozen-×first": {"first 20 as a multiple of before", func(x *measure.Result) []float64 { return []float64{stats.Ratio(x.Freeze.First, x.Freeze.Mean)} }, Digits},
	"frozen-×after": {"later as a multiple of before", func(x *measure.Result) []float64 { return []float64{stats.Ratio(x.Freeze.After, x.Freeze.Healthy)} }, Digits},
	"least":         {"least of the rounds", func(x *measure.Result) []float64 { return slices.Sorted(slices.Values(x.Rates))[:1] }, Count},
	"most":          {"most", func(x *measure.Result) []float64 { return slices.Sorted(slices.Values(x.Rates))[len(x.Rates)-1:] }, Count},
	"jain":          one("Jain", func(f float64) string { return fmt.Sprintf("%.3f", f) }, func(x *measure.Result) float64 { return x.Jain }),
	"never":         one("never served", Count, func(x *measure.Result) float64 { return float64(x.Never) }),
	"commands":      one("commands", Digits, func(x *measure.Result) float64 { return x.Commands }),
	"per-over":      one("commands a hand-over", Digits, func(x *measure.Result) float64 { return x.PerHandOver }),
	"writes":        one("writes of the cluster", Digits, func(x *measure.Result) float64 { return x.Writes }),
	"client":        long("client CPU", func(x *measure.Result) time.Duration { return x.ClientCPU }),
	"server":        long("server CPU", func(x *measure.Result) time.Duration { return x.ServerCPU }),
	"on-server":     long("on the server", func(x *measure.Result) time.Duration { return x.OnServer }),
	"allocs":        one("allocations", Count, func(x *measure.Result) float64 { return x.Allocs }),
	"count":         one("locks or contenders", Count, func(x *measure.Result) float64 { return float64(x.Count) }),
	"acquire":       long("acquire, server", func(x *measure.Result) time.Duration { return x.Kept.Acquire }),
	"extend":        long("extend, server", func(x *measure.Result) time.Duration { return x.Kept.Extend }),
	"extension":     times("extend, server", func(x *measure.Result) []float64 { return x.Extensions }),
	"release":       long("release, server", func(x *measure.Result) time.Duration { return x.Kept.Release }),
	"lock-bytes":    one("bytes of a lock, server", Count, func(x *measure.Result) float64 { return x.Kept.Lock }),
	"after-bytes":   one("bytes after it, server", Count, func(x *measure.Result) float64 { return x.Kept.After }),
	"client-bytes":  one("bytes of each, client", Count, func(x *measure.Result) float64 { return x.Kept.Client }),
	"goroutines":    one("goroutines more", Count, func(x *measure.Result) float64 { return x.Kept.Goroutines }),
	"reads":         one("reads a second and server", Count, func(x *measure.Result) float64 { return x.Kept.Reads }),
}

// column returns a column's head, and what it shows of a result. A column is the
// name of a figure. With × before it, it is the multiple of the base's, round by
// round.
func column(name string, x, base *measure.Result) (head, text string) {
	f, known := figures[strings.TrimPrefix(name, "×")]
	if !known {
		panic("no figure " + name) // found by a test
	}
	text = "–"
	switch {
	case strings.HasPrefix(name, "×"):
		if head = "×"; x.Failed == "" && base != nil {
			text = Digits(stats.Ratio(f.of(x), f.of(base)))
		}
	default:
		if head = f.head; x.Failed == "" {
			text = f.format(stats.Median(f.of(x)))
		}
	}
	return head, text
}
