package measure

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/redlatch/redlatch/bench/cell"
	"github.com/redlatch/redlatch/bench/server"
	"github.com/redlatch/redlatch/bench/system"
)

// Progress is told how far a run is.
type Progress interface {
	// Begin says that a cell, or several at once, are being measured.
	Begin(what string, planned time.Duration)
	// End says that they are done.
	End()
}

// Runner measures cells.
type Runner struct {
	Settings cell.Settings
	Progress Progress

	// RoundTrips are those measured beside the pairs.
	RoundTrips []RoundTrip

	redis map[int]*server.Redis
	etcd  *server.Etcd
	names int
}

// Run measures all cells. What it returns is what was measured until ctx
// ended.
func (r *Runner) Run(ctx context.Context, cells []cell.Cell) ([]Result, error) {
	defer r.stopServers()
	var results []Result
	var kind cell.Kind
	for _, b := range cell.Batches(cells) {
		if ctx.Err() != nil {
			return results, ctx.Err()
		}
		// Each situation has servers of its own: none is left with another's
		// keys, and none is frozen.
		if b[0].Kind != kind {
			r.stopServers()
			kind = b[0].Kind
		}
		what, planned := b[0].ID(), time.Duration(0)
		if len(b) > 1 {
			what = fmt.Sprintf("%s and %d more in turns", what, len(b)-1)
		}
		for _, c := range b {
			planned += r.Settings.Duration(c)
		}
		r.Progress.Begin(what, planned)
		results = append(results, r.batch(ctx, b)...)
		r.Progress.End()
	}
	return results, ctx.Err()
}

func (r *Runner) batch(ctx context.Context, b cell.Batch) []Result {
	results := make([]Result, len(b))
	for i, c := range b {
		results[i] = Result{ID: c.ID(), Cell: c}
	}
	var err error
	switch b[0].Kind {
	case cell.Pair, cell.FrozenPair:
		err = r.pairs(ctx, results)
	case cell.Own:
		err = r.own(ctx, results)
	case cell.Contended, cell.FrozenContended:
		err = r.contended(ctx, &results[0])
	case cell.Waiting:
		err = r.waiting(ctx, &results[0])
	case cell.Leases:
		err = r.leases(ctx, &results[0])
	}
	for i := range results {
		if err != nil && results[i].Failed == "" {
			results[i].Failed = err.Error()
		}
	}
	return results
}

// backend returns the servers for a contender, and starts them if they are not
// there yet.
func (r *Runner) backend(ctx context.Context, s *system.System, nodes int) (server.Backend, error) {
	if s.Store == system.Etcd {
		if nodes != server.EtcdMembers {
			return nil, fmt.Errorf("etcd is measured with %d members", server.EtcdMembers)
		}
		if r.etcd == nil {
			e, err := server.StartEtcd()
			if err != nil {
				return nil, err
			}
			r.etcd = e
		}
		return r.etcd, nil
	}
	if g, ok := r.redis[nodes]; ok {
		return g, nil
	}
	g, err := server.StartRedis(nodes)
	if err != nil {
		return nil, err
	}
	if err := system.Prepare(ctx, g.Addresses()); err != nil {
		g.Stop()
		return nil, err
	}
	if r.redis == nil {
		r.redis = map[int]*server.Redis{}
	}
	r.redis[nodes] = g
	return g, nil
}

func (r *Runner) stopServers() {
	for n, g := range r.redis {
		g.Stop()
		delete(r.redis, n)
	}
	if r.etcd != nil {
		r.etcd.Stop()
		r.etcd = nil
	}
}

// newName returns a lock's name that nobody had before.
func (r *Runner) newName() string {
	r.names++
	return fmt.Sprintf("bench/%06d", r.names)
}

// selfCPU returns the CPU time that this process has used.
func selfCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// per divides a time by a number of operations.
func per(d time.Duration, n int) time.Duration {
	if n == 0 {
		return 0
	}
	return d / time.Duration(n)
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
