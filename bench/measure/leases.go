package measure

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redlatch/redlatch/bench/server"
	"github.com/redlatch/redlatch/bench/worker"
)

// leases measures what it costs to keep many locks alive, in a process that
// does nothing else.
func (r *Runner) leases(ctx context.Context, result *Result) error {
	// Servers of its own: on those of another contender its locks would expire
	// meanwhile.
	r.stopServers()
	backend, err := r.backend(ctx, result.Cell)
	if err != nil {
		return err
	}
	name := r.newName()
	team, err := worker.Start(ctx, []worker.Config{{
		System: result.System.Key, Addresses: backend.Addresses(), Name: name, Leases: result.Count,
	}})
	if err != nil {
		return err
	}
	defer team.Stop()
	s, err := runShift(ctx, team, backend, 0, r.Settings.LeaseTime, nil)
	if err != nil {
		return err
	}
	if redis, ok := backend.(*server.Redis); ok {
		if err := stillThere(redis, name, result.Count); err != nil {
			return err
		}
	}
	order, counted := s.seconds()
	result.Leases = Leases{
		Goroutines: s.report.Goroutines,
		Heap:       float64(s.report.Heap) / float64(result.Count),
		Stack:      float64(max(s.report.Stack, 0)) / float64(result.Count),
		Costs: Costs{
			Commands:  float64(result.System.Sent(s.counted.Commands)) / counted,
			ClientCPU: time.Duration(float64(s.report.CPU) / order),
			ServerCPU: time.Duration(float64(s.counted.CPU) / counted),
		},
	}
	return nil
}

// stillThere checks that no lease was lost, that is, that a majority of servers
// has each: keeping the rest would cost less.
func stillThere(redis *server.Redis, name string, leases int) error {
	servers, on := len(redis.Addresses()), map[string]int{}
	for i := range servers {
		keys, err := redis.Keys(i, "*"+name+"/*")
		if err != nil {
			return err
		}
		for _, k := range keys {
			// Beside each lock redlatch has keys that outlive it.
			if !strings.HasPrefix(k, "redlatch:") {
				on[k]++
			}
		}
	}
	left := 0
	for _, n := range on {
		if n > servers/2 {
			left++
		}
	}
	if left < leases {
		return fmt.Errorf("of %d leases %d are left", leases, left)
	}
	return nil
}
