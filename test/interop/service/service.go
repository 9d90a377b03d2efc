//go:build unix

package service

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	redsyncgoredis "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredis "github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/fresh"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/store/redis/direct"
)

const (
	name = "shared"
	ttl  = time.Second
	// Cluster parameters with a quarantine of a little over two seconds.
	maxTTL = 2 * time.Second
	window = 600 * time.Millisecond
	// retryDelay is the same for both sides: a side that asks less often is
	// served less often.
	retryDelay = 40 * time.Millisecond
)

// Trouble is the faults of the servers.
type Trouble int

// The troubles.
const (
	// Kept: one server at a time is killed, and restarts with all its data.
	Kept Trouble = iota
	// Forgets: three of the five are killed at once, and restart empty.
	Forgets
)

// Config says what is run.
type Config struct {
	For     time.Duration
	Trouble Trouble
	// name of the lock on redsync's side. With another name neither side sees
	// the other, which the judge must notice. Defaults to the same.
	elsewhere string
}

// Report is the result.
type Report struct {
	Turns    map[string]int // how often each side had the lock
	Kills    int
	Overlaps []Overlap
}

func (r *Report) String() string {
	return fmt.Sprintf("redlatch had the lock %d times, redsync %d times, %d servers were killed, %d overlaps, %d of them since redlatch took what another held",
		r.Turns["redlatch"], r.Turns["redsync"], r.Kills, len(r.Overlaps), len(r.Ours()))
}

type world struct {
	t       testing.TB
	servers []*servertest.Server
	cfg     Config

	mu    sync.Mutex
	holds []hold
	kills int
}

func (w *world) held(side string, from, to time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.holds = append(w.holds, hold{side, from, to})
}

// Run runs both services for a time.
func Run(t testing.TB, cfg Config) *Report {
	w := &world{t: t, cfg: cfg, servers: startServers(t, cfg.Trouble)}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go w.watch(ctx, cancel)
	var all sync.WaitGroup
	for range 2 { // processes of each service
		locks, mutexes := newRedlatch(t, w.servers, redlatch.Options{}), newRedsync(t, w.servers)
		for range 2 { // workers of each process
			all.Go(func() { w.redlatchWorker(ctx, locks) })
			all.Go(func() { w.redsyncWorker(ctx, mutexes) })
		}
	}
	w.trouble(ctx)
	all.Wait()
	r := w.report()
	r.Overlaps = judge(w.holds)
	return r
}

// report writes the counts, without a judgement.
func (w *world) report() *Report {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := &Report{Turns: map[string]int{}, Kills: w.kills}
	for _, h := range w.holds {
		r.Turns[h.side]++
	}
	return r
}

// Enough reports whether enough happened for the verdict to count.
func (r *Report) Enough() bool {
	return r.turnsEach(10) && r.Kills >= 5
}

func (r *Report) turnsEach(n int) bool { return r.Turns["redlatch"] >= n && r.Turns["redsync"] >= n }

// Ours are the overlaps in which redlatch came second: it took a lock that
// another client held.
func (r *Report) Ours() []Overlap {
	var ours []Overlap
	for _, o := range r.Overlaps {
		if o.Second == "redlatch" {
			ours = append(ours, o)
		}
	}
	return ours
}

// enough reports whether enough happened for a verdict. Where the two sides use
// different keys, each must have taken the lock while the other had it.
func (w *world) enough() bool {
	if w.cfg.elsewhere == "" {
		return w.report().Enough()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	second := map[string]bool{}
	for _, o := range judge(w.holds) {
		second[o.Second] = true
	}
	return len(second) == 2
}

// mostTime is how long even a short run waits until enough has happened.
const mostTime = 3 * time.Minute

// watch ends the run when its time is over and enough happened; on a busy
// machine that takes longer.
func (w *world) watch(ctx context.Context, end func()) {
	began, tick := time.Now(), time.NewTicker(100*time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		<-tick.C
		if gone := time.Since(began); gone > w.cfg.For && w.enough() || gone > max(5*w.cfg.For, mostTime) {
			end()
		}
	}
}

func startServers(t testing.TB, trouble Trouble) []*servertest.Server {
	if trouble == Forgets {
		return servertest.Redis(t, 5)
	}
	// Each write is on the disk before it is answered, so that a kill loses
	// nothing.
	return servertest.Redis(t, 5, "--appendonly", "yes", "--appendfsync", "always")
}

func newRedlatch(t testing.TB, servers []*servertest.Server, opts redlatch.Options) *redlatch.Client {
	nodes, err := direct.Nodes(servertest.Addresses(servers)...)
	if err != nil {
		t.Fatal(err)
	}
	if opts.MaxTTL == 0 {
		opts.MaxTTL = maxTTL
	}
	opts.TokenWindow, opts.AssumeFresh, opts.RetryDelay = window, true, retryDelay
	opts.NodeTimeout = time.Second // others share this machine
	c, err := redlatch.New(nodes, &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if opts.Guard != redlatch.GuardOff {
		if err := fresh.Declare(context.Background(), c); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func newRedsync(t testing.TB, servers []*servertest.Server) *redsync.Redsync {
	var pools []redis.Pool
	for _, s := range servers {
		c := goredis.NewClient(&goredis.Options{Addr: s.Addr(), ContextTimeoutEnabled: true, MaxRetries: -1})
		t.Cleanup(func() { c.Close() })
		pools = append(pools, redsyncgoredis.NewPool(c))
	}
	return redsync.New(pools...)
}

// redlatchWorker takes the lock, uses it for a while, and releases it.
func (w *world) redlatchWorker(ctx context.Context, locks *redlatch.Client) {
	for ctx.Err() == nil {
		lease, err := locks.Lock(ctx, name, &redlatch.LockOptions{TTL: ttl, Wait: 5 * time.Second})
		if err != nil {
			pause(ctx, 50*time.Millisecond) // no quorum now
			continue
		}
		from := time.Now()
		select {
		case <-lease.Context().Done():
		case <-time.After(w.work()):
		}
		w.held("redlatch", from, earlier(time.Now(), lease.Deadline()))
		lease.Release(context.Background())
	}
}

// redsyncWorker does the same with redsync. It extends long holds, as its users
// do, and stops when an extension fails.
func (w *world) redsyncWorker(ctx context.Context, mutexes *redsync.Redsync) {
	key := name + w.cfg.elsewhere
	for ctx.Err() == nil {
		m := mutexes.NewMutex(key, redsync.WithExpiry(ttl), redsync.WithTries(1), redsync.WithTimeoutFactor(0.25))
		if m.LockContext(ctx) != nil {
			pause(ctx, retryDelay)
			continue
		}
		from := time.Now()
		for end := from.Add(w.work()); time.Now().Before(end); {
			time.Sleep(min(time.Until(end), ttl/3))
			if ok, err := m.ExtendContext(context.Background()); !ok || err != nil {
				break
			}
		}
		w.held("redsync", from, earlier(time.Now(), m.Until()))
		m.UnlockContext(context.Background())
	}
}

// work is how long a piece of work takes: mostly short, occasionally several
// times to live. If servers forget it is more often long, so that there are
// locks to forget.
func (w *world) work() time.Duration {
	if rand.IntN(20) == 0 || w.cfg.Trouble == Forgets && rand.IntN(8) == 0 {
		return time.Duration(rand.Int64N(int64(2 * ttl)))
	}
	return time.Duration(rand.Int64N(int64(20 * time.Millisecond)))
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func pause(ctx context.Context, most time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(rand.Int64N(int64(most)))):
	}
}

// trouble kills and restarts servers until ctx ends.
func (w *world) trouble(ctx context.Context) {
	for i := 0; ctx.Err() == nil; {
		n := 1
		if w.cfg.Trouble == Forgets {
			n = 3
		}
		var down []*servertest.Server
		for range n {
			s := w.servers[i%len(w.servers)]
			i++
			s.Kill()
			w.mu.Lock()
			w.kills++
			w.mu.Unlock()
			down = append(down, s)
		}
		pause(ctx, 600*time.Millisecond)
		for _, s := range down {
			s.Restart()
		}
		// Redlatch quarantines a server that was down. If a majority was down,
		// redlatch gets the lock again only after a pause of that length. If
		// one was down, the pause leaves it a quorum to spare.
		rest := 2500 * time.Millisecond
		if w.cfg.Trouble == Forgets {
			rest = 3 * maxTTL
		}
		select {
		case <-ctx.Done():
		case <-time.After(rest):
		}
	}
}
