package measure

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redlatch/redlatch/bench/clock"
	"github.com/redlatch/redlatch/bench/resp"
	"github.com/redlatch/redlatch/bench/system"
	"github.com/redlatch/redlatch/bench/worker"
)

// leases measures what it costs to keep many locks alive, in a process that
// does nothing else.
func (r *Runner) leases(ctx context.Context, result *Result) error {
	s, err := system.Find(result.System)
	if err != nil {
		return err
	}
	// Servers of its own: those of another contender would have its locks run
	// out meanwhile.
	r.stopServers()
	backend, err := r.backend(ctx, s, result.Nodes)
	if err != nil {
		return err
	}
	name := r.newName()
	team, err := worker.Start(ctx, []worker.Config{{
		Mode: worker.Keep, System: result.System, Addresses: backend.Addresses(), Name: name, Leases: result.Count,
	}})
	if err != nil {
		return err
	}
	defer team.Stop()
	before, err := backend.Sample()
	if err != nil {
		return err
	}
	start := clock.Now() + int64(lead)
	o := worker.Order{Start: start, End: start + int64(r.Settings.LeaseTime)}
	if err := team.Begin(o); err != nil {
		return err
	}
	if err := sleep(ctx, o.End-int64(tail)); err != nil {
		return err
	}
	after, err := backend.Sample()
	if err != nil {
		return err
	}
	if s.Store == system.Redis {
		if err := stillThere(backend.Addresses(), name, result.Count); err != nil {
			return err
		}
	}
	report, _, err := team.Finish(o)
	if err != nil {
		return err
	}
	d := after.Sub(before)
	seconds := time.Duration(d.At - d.Begun).Seconds()
	each := func(cpu time.Duration, seconds float64) time.Duration {
		return time.Duration(float64(cpu) / seconds)
	}
	result.Leases = &Leases{
		Seconds:    seconds,
		Goroutines: report.Goroutines,
		Heap:       float64(report.Heap) / float64(result.Count),
		Stack:      float64(max(report.Stack, 0)) / float64(result.Count),
		Commands:   float64(s.Sent(d.Commands)) / seconds,
		ClientCPU:  each(report.CPU, time.Duration(o.End-o.Start).Seconds()),
		ServerCPU:  each(d.CPU, seconds),
	}
	return nil
}

// stillThere checks that no lease was lost, which is to say that a majority of
// servers has each: the rest would look the cheaper for it.
func stillThere(addresses []string, name string, leases int) error {
	on := map[string]int{}
	for _, a := range addresses {
		c, err := resp.Dial(a)
		if err != nil {
			return err
		}
		keys, err := c.Do("KEYS", "*"+name+"/*")
		c.Close()
		if err != nil {
			return err
		}
		for _, k := range keys.Items {
			// Beside each lock redlatch has keys that outlive it.
			if !strings.HasPrefix(k.Text, "redlatch:") {
				on[k.Text]++
			}
		}
	}
	left := 0
	for _, n := range on {
		if n > len(addresses)/2 {
			left++
		}
	}
	if left < leases {
		return fmt.Errorf("of %d leases %d are left", leases, left)
	}
	return nil
}
