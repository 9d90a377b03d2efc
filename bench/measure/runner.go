package measure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/bench/cell"
	"github.com/redlatch/redlatch/bench/server"
	"github.com/redlatch/redlatch/bench/system"
)

// Runner measures cells.
type Runner struct {
	Settings cell.Settings
	// Step is called before each step, with the planned time of the step before
	// it. It may be nil.
	Step func(done time.Duration, step string)

	// RoundTrips are those measured beside the pairs.
	RoundTrips []RoundTrip

	redis     map[int]server.Backend // by how many there are
	etcd      *server.Etcd
	databases map[system.Store]*server.Database
	names     int
}

// Run measures all cells. It returns what was measured until ctx ended.
func (r *Runner) Run(ctx context.Context, cells []cell.Cell) []Result {
	defer r.stopServers()
	var results []Result
	var kind cell.Kind
	var store system.Store
	var planned time.Duration
	for _, b := range cell.Batches(cells) {
		if ctx.Err() != nil {
			break
		}
		// Each situation has servers of its own: without another's keys, and
		// not frozen.
		if b[0].Kind != kind || b[0].System.Store != store && b[0].System.Store != system.Etcd {
			r.stopServers()
			kind, store = b[0].Kind, b[0].System.Store
		}
		what := b[0].ID()
		if len(b) > 1 {
			what = fmt.Sprintf("%s and %d more in turns", what, len(b)-1)
		}
		if r.Step != nil {
			r.Step(planned, what)
		}
		planned = 0
		for _, c := range b {
			planned += r.Settings.Duration(c)
		}
		results = append(results, r.batch(ctx, b)...)
	}
	return results
}

func (r *Runner) batch(ctx context.Context, b []cell.Cell) []Result {
	results := make([]Result, len(b))
	for i, c := range b {
		results[i] = Result{Cell: c}
	}
	var err error
	switch kind := b[0].Kind; {
	case kind.Pairs():
		err = r.pairs(ctx, results)
	case kind == cell.Own:
		err = r.own(ctx, results)
	case kind.Contends():
		err = r.contended(ctx, &results[0])
	case kind == cell.Waiting:
		err = r.waiting(ctx, &results[0])
	case kind == cell.Leases:
		err = r.leases(ctx, &results[0])
	}
	for i := range results {
		if err != nil && results[i].Failed == "" {
			results[i].Failed = err.Error()
		}
	}
	return results
}

// backend returns the servers of a cell, and starts them if they do not run yet.
func (r *Runner) backend(ctx context.Context, c cell.Cell) (server.Backend, error) {
	if c.System.Store == system.Etcd {
		if c.Nodes != server.EtcdMembers {
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
	if start, ok := startDatabase[c.System.Store]; ok {
		return r.database(ctx, c.System.Store, start)
	}
	if b, ok := r.redis[c.Nodes]; ok {
		return b, nil
	}
	b, err := startRedis(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := system.Prepare(ctx, b.Addresses(), c.Kind == cell.Scripts); err != nil {
		b.Stop()
		return nil, err
	}
	if r.redis == nil {
		r.redis = map[int]server.Backend{}
	}
	r.redis[c.Nodes] = b
	return b, nil
}

// startRedis starts the servers of a cell, and the links to them.
func startRedis(ctx context.Context, c cell.Cell) (server.Backend, error) {
	g, err := server.StartRedis(ctx, c.Nodes)
	network, linked := c.Kind.Network(c.Nodes)
	if err != nil || !linked {
		return g, err
	}
	l, err := server.Link(g, network)
	if err != nil {
		g.Stop()
		return nil, err
	}
	return l, nil
}

var startDatabase = map[system.Store]func() (*server.Database, error){
	system.Postgres: server.StartPostgres, system.MariaDB: server.StartMariaDB,
}

func (r *Runner) database(ctx context.Context, store system.Store, start func() (*server.Database, error)) (server.Backend, error) {
	if d, ok := r.databases[store]; ok {
		return d, nil
	}
	d, err := start()
	if err != nil {
		return nil, err
	}
	if err := system.PrepareDatabase(ctx, store, d.Addresses()); err != nil {
		d.Stop()
		return nil, err
	}
	if r.databases == nil {
		r.databases = map[system.Store]*server.Database{}
	}
	r.databases[store] = d
	return d, nil
}

// freeze freezes a server if the cell asks for it. What it returns ends the
// servers then: the frozen one missed too much to serve in another cell.
func (r *Runner) freeze(c cell.Cell) (stop func(), err error) {
	if !c.Kind.Frozen() {
		return func() {}, nil
	}
	redis, ok := r.redis[c.Nodes].(*server.Redis)
	if !ok {
		return nil, errors.New("there is no server to freeze")
	}
	return r.stopServers, redis.Freeze()
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
	for store, d := range r.databases {
		d.Stop()
		delete(r.databases, store)
	}
}

// newName returns a name that no lock had before.
func (r *Runner) newName() string {
	r.names++
	return fmt.Sprintf("bench/%06d", r.names)
}
