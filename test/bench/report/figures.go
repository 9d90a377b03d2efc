package report

import (
	"fmt"
	"time"

	"github.com/redlatch/redlatch/test/bench/measure"
	"github.com/redlatch/redlatch/test/bench/stats"
)

// figure is a number of a result, as a column shows it.
type figure struct {
	head string
	of   func(*measure.Result) string
}

// long is a figure that is a time, ratio one with three digits, number a whole one.
func long(head string, of func(*measure.Result) time.Duration) figure {
	return figure{head, func(x *measure.Result) string { return Short(of(x)) }}
}

func ratio(head string, of func(*measure.Result) float64) figure {
	return figure{head, func(x *measure.Result) string { return Digits(of(x)) }}
}

func number(head string, of func(*measure.Result) float64) figure {
	return figure{head, func(x *measure.Result) string { return Count(of(x)) }}
}

// beside is the rate beside that of the native lock.
func beside(x *measure.Result) string {
	if x.Base == nil || x.Base.Rate() == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", x.Rate()/x.Base.Rate())
}

// figures are by name.
var figures = map[string]figure{
	"pair":         long("median", func(x *measure.Result) time.Duration { return x.Pair.Median }),
	"pair-p99":     long("p99", func(x *measure.Result) time.Duration { return x.Pair.P99 }),
	"wait":         long("wait, median", func(x *measure.Result) time.Duration { return x.Wait.Median }),
	"wait-p99":     long("wait, p99", func(x *measure.Result) time.Duration { return x.Wait.P99 }),
	"wait-max":     long("wait, longest", func(x *measure.Result) time.Duration { return x.Wait.Max }),
	"over":         long("hand-over, median", func(x *measure.Result) time.Duration { return x.HandOver.Median }),
	"over-p99":     long("hand-over, p99", func(x *measure.Result) time.Duration { return x.HandOver.P99 }),
	"rate":         number("a second", (*measure.Result).Rate),
	"hand-overs":   number("hand-overs a second", (*measure.Result).HandOverRate),
	"jain":         {"Jain", func(x *measure.Result) string { return fmt.Sprintf("%.3f", x.Jain) }},
	"never":        number("never served", func(x *measure.Result) float64 { return float64(x.Never) }),
	"commands":     ratio("commands", func(x *measure.Result) float64 { return x.Commands }),
	"per-over":     ratio("commands a hand-over", func(x *measure.Result) float64 { return x.PerHandOver }),
	"writes":       ratio("writes of the cluster", func(x *measure.Result) float64 { return x.Writes }),
	"client":       long("client CPU", func(x *measure.Result) time.Duration { return x.ClientCPU }),
	"server":       long("server CPU", func(x *measure.Result) time.Duration { return x.ServerCPU }),
	"beside":       {"× native", beside},
	"alone":        number("with one processor", func(x *measure.Result) float64 { return stats.Median(x.Alone) }),
	"scales":       ratio("all beside one", func(x *measure.Result) float64 { return x.Rate() / max(stats.Median(x.Alone), 1) }),
	"overtaken":    number("overtaken by", func(x *measure.Result) float64 { return float64(x.Overtaken) }),
	"unreleased":   number("releases failed", func(x *measure.Result) float64 { return float64(x.Unreleased) }),
	"lost":         number("leases lost", func(x *measure.Result) float64 { return float64(x.Lost) }),
	"exit-69":      number("exit with 69", func(x *measure.Result) float64 { return float64(x.NoQuorum) }),
	"exit-other":   number("with another but 0", func(x *measure.Result) float64 { return float64(x.Other) }),
	"took":         long("until all are done", func(x *measure.Result) time.Duration { return x.Took }),
	"count":        number("locks", func(x *measure.Result) float64 { return float64(x.Count) }),
	"acquire":      long("acquire, server", func(x *measure.Result) time.Duration { return x.Kept.Acquire }),
	"extend":       long("extend, server", func(x *measure.Result) time.Duration { return x.Kept.Extend }),
	"release":      long("release, server", func(x *measure.Result) time.Duration { return x.Kept.Release }),
	"lock-bytes":   number("bytes of a lock, server", func(x *measure.Result) float64 { return x.Kept.Lock }),
	"after-bytes":  number("bytes after it, server", func(x *measure.Result) float64 { return x.Kept.After }),
	"client-bytes": number("bytes of each, client", func(x *measure.Result) float64 { return x.Kept.Client }),
}
