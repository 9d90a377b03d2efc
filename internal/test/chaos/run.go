//go:build unix

package chaos

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/test/clockshim"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// Config says what a run does. Every field but the last few must be set.
type Config struct {
	Program string   // redis-server or valkey-server, with its path; for nodes of that kind
	Path    string   // of a program that calls RunClient
	Args    []string // with these arguments, its own name before them
	Nodes   []ServerKind
	Clients int
	Names   int
	For     time.Duration
	Seed    uint64
	Faults  []Family      // none for a calm run, with the defaults of redlatch
	Least   time.Duration // between two faults
	Most    time.Duration
	Fenced  bool
	Notice  func(text string) // gets what cannot be done here, and the progress of the run

	// NoGuard breaks the clients on purpose: they trust servers that forgot.
	NoGuard bool
	// Allowed is how many nodes may have a fault at once. Defaults to as many
	// as leave a quorum, and to one if there is only one.
	Allowed int
}

const (
	// liveLimit is how long every client has to get a lock, at first and after
	// the faults: a quarantine, the other clients in the queue, and a slow
	// machine.
	liveLimit = 3 * time.Minute
	// endLimit is how long a client has to end.
	endLimit = 3 * time.Minute
	// ghostMargin is how long after the longest TTL a lock may still exist:
	// servers remove expired keys with a delay, and a machine is slow.
	ghostMargin = 5 * time.Second
)

// Run starts servers and clients, injects faults, heals them, and judges.
func Run(ctx context.Context, c Config) (*Result, error) {
	dir, err := os.MkdirTemp("", "rlt") // short, since the length of a socket's path is limited
	if err != nil {
		return nil, fmt.Errorf("there is no folder for the servers: %w", err)
	}
	defer os.RemoveAll(dir)
	r := &running{Config: c, dir: dir, result: &Result{Seed: c.Seed}, recorder: &recorder{holding: map[attemptID]int64{}, last: map[int]int64{}}, calm: len(c.Faults) == 0}
	defer r.stop()
	if r.errors, err = os.Create(filepath.Join(dir, "errors")); err != nil {
		return nil, err
	}
	if err := r.setUp(ctx); err != nil {
		return nil, err
	}
	if err := r.torture(ctx); err != nil {
		return nil, err
	}
	r.result.Verdict = Judge(r.result.History)
	return r.result, nil
}

// running is a run in progress.
type running struct {
	Config
	dir      string
	result   *Result
	recorder *recorder
	errors   *os.File // what clients write to stderr
	cluster  *cluster
	members  []*member
	nemesis  *nemesis
	store    *resource
	names    []plan
	calm     bool
}

func (r *running) bounds() bounds {
	switch {
	case r.calm:
		return calmBounds
	case len(r.Nodes) == 1:
		return oneNodeBounds
	case slices.Contains([]ServerKind{Postgres, MariaDB, MySQL}, r.Nodes[0]):
		return databaseBounds
	}
	return standardBounds
}

// said returns what clients wrote to stderr.
func (r *running) said() string {
	text, _ := os.ReadFile(r.errors.Name())
	return string(text)
}

// setUp starts servers and clients, and finds out which faults are possible
// here.
func (r *running) setUp(ctx context.Context) error {
	r.cluster = &cluster{dir: r.dir, program: r.Program}
	r.provide()
	if len(r.result.Ran) == 0 && !r.calm {
		return fmt.Errorf("none of the faults is possible here: %s", r.result.LeftOut[0])
	}
	r.names = plans(r.Names, r.calm)
	err := r.cluster.start(r.Nodes, r.Clients)
	if err == nil {
		err = r.cluster.declare(ctx, r.bounds())
	}
	if err != nil {
		return fmt.Errorf("the servers cannot be set up: %w", err)
	}
	file := filepath.Join(r.dir, "resource.db")
	if r.store, err = openResource(file, r.Fenced); err != nil {
		return err
	}
	var parts []string
	for _, p := range r.names {
		parts = append(parts, p.parts()...)
	}
	if err := r.store.create(ctx, parts); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(r.Seed, 1))
	wrongClocks := slices.ContainsFunc(r.Faults, func(f Family) bool { return f.Name == "client-clock" })
	for i := range r.Clients {
		m := &member{number: i + 1, path: r.Path, args: r.Args, hear: r.recorder.hear, errors: r.errors, config: clientConfig{
			Client: i + 1, Seed: rng.Uint64(), Nodes: addresses(r.cluster.nodes, i), Membership: membership(0), Names: r.names, Bounds: r.bounds(),
			Resource: file, Fenced: r.Fenced, NoGuard: r.NoGuard, Calm: r.calm}}
		if wrongClocks {
			m.config.WallOff = r.bounds().wrongClock(rng)
		}
		if err := m.start(); err != nil {
			return err
		}
		r.members = append(r.members, m)
	}
	return nil
}

// provide sets up what the faults need, and leaves out those that are not
// possible here.
func (r *running) provide() {
	for _, f := range r.Faults {
		var err error
		if !slices.ContainsFunc(r.Nodes, f.hits) {
			err = fmt.Errorf("no server is one of %v", f.kinds)
		} else if f.clock && r.cluster.shim == "" {
			r.cluster.shim, err = clockshim.Build(r.dir)
		}
		if err == nil {
			r.result.Ran = append(r.result.Ran, f)
			continue
		}
		why, _, _ := strings.Cut(f.Name+": "+err.Error(), "\n")
		r.result.LeftOut = append(r.result.LeftOut, why)
		r.Notice("not run: " + why)
	}
}

// torture injects faults for the configured time, heals them, and checks what
// is left.
func (r *running) torture(ctx context.Context) error {
	r.Allowed = cmp.Or(r.Allowed, max(1, (len(r.Nodes)-1)/2))
	r.nemesis = &nemesis{
		in: r.cluster, nodes: r.cluster.nodes, members: r.members, bounds: r.bounds(), holders: r.recorder.holders, allowed: r.Allowed,
		families: r.result.Ran, rng: rand.New(rand.NewPCG(r.Seed, 2)), least: r.Least, most: r.Most,
	}
	// The time starts when every client has had a lock.
	if err := r.awaitAll(ctx, 0); err != nil {
		return fmt.Errorf("the clients do not get going: %w: %s", err, r.said())
	}
	r.result.Began = now()
	striking, cancel := context.WithTimeout(ctx, r.For)
	defer cancel()
	go r.progress(striking)
	r.nemesis.run(striking)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	h := &History{Fenced: r.Fenced, Calm: r.calm, Clients: r.Clients, Names: r.Names, Healed: now()}
	r.result.History = h
	var err error
	if h.Faults, err = r.nemesis.history(); err != nil {
		return err
	}
	alive := r.awaitAll(ctx, h.Healed)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	h.Live = r.recorder.since(h.Healed)
	if err := servertest.Together(r.members, func(m *member) error { return m.end(endLimit) }); err != nil && alive == nil {
		return fmt.Errorf("%w: %s", err, r.said())
	}
	h.Events = r.recorder.all()
	return r.look(ctx, h)
}

// awaitAll waits until every client has got a lock after a moment.
func (r *running) awaitAll(ctx context.Context, moment int64) error {
	for end := time.Now().Add(liveLimit); time.Now().Before(end); {
		if len(r.recorder.since(moment)) == len(r.members) {
			return nil
		}
		if !wait(ctx, 10*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	events := r.recorder.all()
	return fmt.Errorf("after %v only the clients %v of %d had a lock; the last events are %+v",
		liveLimit, r.recorder.since(moment), len(r.members), events[max(0, len(events)-20):])
}

// look reads the resource, and what is left on the servers after every lock has
// expired.
func (r *running) look(ctx context.Context, h *History) error {
	for end := time.Now().Add(r.bounds().MaxTTL + ghostMargin); ; {
		left, err := r.cluster.locksLeft(ctx)
		if err != nil {
			return err
		}
		if h.Left = left; len(left) == 0 || time.Now().After(end) {
			break
		}
		if !wait(ctx, 50*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	var err error
	h.Rows, h.Counters, err = r.store.rows(ctx)
	return err
}

// progress reports the progress of the run now and then.
func (r *running) progress(ctx context.Context) {
	every := max(5*time.Second, r.For/20)
	for elapsed := every; wait(ctx, every); elapsed += every {
		r.Notice(fmt.Sprintf("%v of %v: %d acquisitions, %d faults", elapsed.Round(time.Second), r.For, count(r.recorder.all()).Acquisitions(), r.nemesis.struck()))
	}
}

// stop ends everything that runs.
func (r *running) stop() {
	for _, m := range r.members {
		m.kill()
	}
	r.errors.Close()
	if r.store != nil {
		r.store.db.Close()
	}
	if r.cluster != nil {
		r.cluster.stop()
	}
}
