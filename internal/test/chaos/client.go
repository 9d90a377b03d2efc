//go:build unix

package chaos

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/clientaccess"
	"github.com/redlatch/redlatch/internal/test/stall"
)

// ClientVerb is the first argument with which a program must call RunClient.
const ClientVerb = "__torture-client"

// clientConfig is the configuration of a client process, on the first line of
// its standard input.
type clientConfig struct {
	Client     int           `json:"client"`
	Life       int           `json:"life"`
	Seed       uint64        `json:"seed"`
	Nodes      string        `json:"nodes"` // addresses, as redlatch.Open has them
	Membership string        `json:"membership"`
	Names      []plan        `json:"names"`
	Bounds     bounds        `json:"bounds"`
	Resource   string        `json:"resource"` // the file that it is in
	Fenced     bool          `json:"fenced"`
	WallOff    time.Duration `json:"wall_off"` // the initial error of its wall clock
	Calm       bool          `json:"calm"`     // there are no faults: every request must succeed
	NoGuard    bool          `json:"no_guard"` // servers that forgot are trusted at once
}

// bounds are the cluster parameters: small, so that a quarantine is over soon
// and the run continues.
type bounds struct {
	MaxTTL      time.Duration `json:"max_ttl"`
	Window      time.Duration `json:"window"`
	NodeTimeout time.Duration `json:"node_timeout"`
	Hold        time.Duration `json:"hold"` // how long most leases are held at most
}

var standardBounds = bounds{MaxTTL: 2 * time.Second, Window: 600 * time.Millisecond, NodeTimeout: 150 * time.Millisecond, Hold: 12 * time.Millisecond}

// databaseBounds are for several databases, whose statements take longer than Redis's
// commands on a machine that they share.
var databaseBounds = bounds{MaxTTL: 4 * time.Second, Window: time.Second, NodeTimeout: 600 * time.Millisecond, Hold: 50 * time.Millisecond}

// oneNodeBounds are for a run with one node. A request that was sent before a
// failover outlives it, and so do the leases that it would overlap with.
var oneNodeBounds = bounds{MaxTTL: 3 * time.Second, Window: 600 * time.Millisecond, NodeTimeout: 1500 * time.Millisecond, Hold: 300 * time.Millisecond}

// calmBounds are the defaults of redlatch, for a run without faults.
var calmBounds = bounds{MaxTTL: 30 * time.Second, Window: 10 * time.Second, Hold: 20 * time.Millisecond}

// quarantine is how long a node that may have forgotten is quarantined.
func (b bounds) quarantine() time.Duration { return max(b.MaxTTL, 3*b.Window) + b.MaxTTL/15 }

// RunClient is a client process: it takes locks and writes to the resource
// until its standard input ends, and reports every step on its standard output.
// It returns the exit code.
func RunClient(in io.Reader, out, complaints io.Writer) int {
	lines := json.NewDecoder(in)
	var config clientConfig
	if err := lines.Decode(&config); err != nil {
		fmt.Fprintln(complaints, "torture client:", err)
		return 2
	}
	ctx, stop := context.WithCancel(context.Background())
	c := &client{clientConfig: config, ctx: ctx, out: out, clock: &wallClock{}}
	c.got.Store(now())
	c.clock.off.Store(int64(config.WallOff))
	go func() {
		defer stop()
		// Each line orders another error of the wall clock.
		for off := int64(0); lines.Decode(&off) == nil; {
			c.clock.off.Store(off)
		}
	}()
	if err := c.run(); err != nil {
		fmt.Fprintf(complaints, "torture client %d: %v\n", c.Client, err)
		return 1
	}
	return 0
}

type client struct {
	clientConfig
	ctx   context.Context // ends when the client is to end
	clock *wallClock
	locks *redlatch.Client
	store *resource
	got   atomic.Int64 // when it last got a lock, or began

	mu  sync.Mutex
	out io.Writer
}

// impatientFor is for how long a client that gets no lock goes on to leave queues
// early. On a machine that is so busy that nobody's turn comes within three seconds,
// nobody would ever get one: those that come and go write all the time.
const impatientFor = 20 * time.Second

// takers is how many goroutines of a client take locks: some of them wait for
// one name, and pass it on.
const takers = 3

// taker is one of them.
type taker struct {
	*client
	rng       *rand.Rand
	seq       int
	forgotten []*held // leases that were never released
}

// tell writes an event in one call, so that a process that is killed leaves
// whole lines. A client whose reader is gone ends.
func (c *client) tell(e Event) {
	e.Client, e.Life = c.Client, c.Life
	e.At = cmp.Or(e.At, now())
	line, err := json.Marshal(e)
	if err != nil {
		panic(err) // an Event can always be written
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.out.Write(append(line, '\n')); err != nil {
		os.Exit(1)
	}
}

func (c *client) run() error {
	var err error
	if c.store, err = openResource(c.Resource, c.Fenced); err != nil {
		return err
	}
	defer c.store.db.Close()
	stall.Watch()
	opts := redlatch.Options{
		Label: fmt.Sprintf("torture-%d.%d", c.Client, c.Life), Cluster: redlatch.Cluster{MaxTTL: c.Bounds.MaxTTL, Membership: c.Membership},
		NodeTimeout: c.Bounds.NodeTimeout, Guard: redlatch.GuardOn,
	}
	clientaccess.SetClock(&opts, c.clock)
	clientaccess.SetWindow(&opts, c.Bounds.Window)
	if c.NoGuard {
		opts.Guard = redlatch.GuardOff
	}
	if c.locks, err = redlatch.Open(c.Nodes, &opts); err != nil {
		return err
	}
	all := make([]taker, takers)
	var running sync.WaitGroup
	for i := range all {
		all[i] = taker{client: c, seq: i, rng: rand.New(rand.NewPCG(c.Seed, uint64(c.Client)<<32|uint64(c.Life)<<4|uint64(i)))}
		running.Go(all[i].run)
	}
	running.Wait()
	// Close releases what is still held; report that before it happens.
	for i := range all {
		for _, h := range all[i].forgotten {
			if h.lease.Remaining() > 0 {
				c.tell(h.event(Release))
			}
		}
	}
	return c.locks.Close()
}

// run takes locks until the client is to end.
func (c *taker) run() {
	for c.ctx.Err() == nil {
		c.seq += takers
		if p := c.Names[c.rng.IntN(len(c.Names))]; c.Calm {
			c.take(p, &attempt{ask: c.locks.Lock, work: work{hold: c.Bounds.Hold}, release: true})
		} else {
			c.take(p, c.attempt(p))
		}
	}
}

// mode draws what to ask for.
func (c *taker) mode(p plan) Share {
	switch n := c.rng.IntN(100); {
	case n < p.Readers:
		return Share{Mode: Reader}
	case n < p.Readers+p.Slotted:
		return Share{Mode: Slot, Slots: slots}
	}
	return Share{}
}

// attempt is one request for a lock, and what is done with it.
type attempt struct {
	ask   func(context.Context, string, *redlatch.LockOptions) (*redlatch.Lease, error)
	opts  redlatch.LockOptions
	share Share
	limit time.Duration // for the request; 0 for none
	work
	release bool
}

// attempt draws one.
func (c *taker) attempt(p plan) *attempt {
	longest := c.Bounds.MaxTTL / 2
	if c.rng.IntN(5) == 0 {
		longest = c.Bounds.MaxTTL
	}
	opts := redlatch.LockOptions{TTL: between(c.rng, c.Bounds.MaxTTL/6, longest), NoKeepAlive: c.rng.IntN(2) == 0}
	if c.rng.IntN(2) == 0 {
		opts = redlatch.LockOptions{TTL: c.Bounds.MaxTTL / 3} // like others in the process: it is passed on to them
	}
	share := c.mode(p)
	opts.Shared = share.Mode == Reader
	opts.Slots = int(share.Slots)
	if c.rng.IntN(50) == 0 {
		opts.Keep = between(c.rng, c.Bounds.MaxTTL/20, c.Bounds.MaxTTL/4)
	}
	hold := between(c.rng, 0, c.Bounds.Hold)
	if share.Mode != Writer {
		hold *= 3 // so that there are others beside it
	}
	if c.rng.IntN(30) == 0 {
		hold = between(c.rng, 0, 3*opts.TTL/2) // past its end, if there is no keep-alive
	}
	work := work{hold: hold, extend: c.rng.IntN(4) == 0, downgrade: share.Mode == Writer && c.rng.IntN(100) < p.Downgrades}
	a := &attempt{ask: c.locks.Lock, opts: opts, share: share, work: work, release: c.rng.IntN(80) > 0}
	if c.rng.IntN(8) == 0 {
		a.ask = c.locks.TryLock
	}
	a.limit = between(c.rng, 100*time.Millisecond, 3*time.Second)
	if now()-c.got.Load() > int64(impatientFor) {
		a.ask, a.limit = c.locks.Lock, liveLimit
	}
	return a
}

// take asks for a lock once, and uses it.
func (c *taker) take(p plan, a *attempt) {
	ctx, began := context.Background(), time.Now()
	if a.limit == liveLimit {
		ctx = c.ctx // it would hold up the end of the client
	}
	if a.limit > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, a.limit)
		defer cancel()
	}
	opts, share := a.opts, a.share
	c.tell(Event{Kind: Ask, Seq: c.seq, Name: p.Name, Share: share})
	lease, err := a.ask(ctx, p.Name, &opts)
	if err != nil {
		c.tell(failed(Event{Kind: Missed, Seq: c.seq, Name: p.Name, Share: share}, err, began))
		if !errors.Is(err, redlatch.ErrHeld) && !errors.Is(err, context.DeadlineExceeded) {
			wait(c.ctx, between(c.rng, 10*time.Millisecond, 100*time.Millisecond)) // no quorum: there will be none at once
		}
		return
	}
	c.got.Store(now())
	share.Slot = uint8(lease.Slot())
	h := &held{taker: c, lease: lease, seq: c.seq, share: share, began: time.Now()}
	got := h.event(Got)
	got.At, got.Deadline, got.Keep = now(), h.deadline(), int64(opts.Keep)
	defer context.AfterFunc(lease.Context(), h.ended)()
	c.tell(got)
	h.use(p, a.work)
	if !a.release && opts.NoKeepAlive {
		// Like a client that has forgotten it: the lock expires by itself.
		c.forgotten = append(c.forgotten, h)
		return
	}
	h.release()
}

// failed is an event with its error, and the longest stall of the machine since
// then.
func failed(e Event, err error, since time.Time) Event {
	e.Err, e.Stall = err.Error(), int64(stall.Longest(since))
	return e
}

// wallClock is the clock of a client whose wall clock is wrong: by an offset
// that can be set while it runs. Leases are measured on the clock that all
// processes share.
type wallClock struct{ off atomic.Int64 }

func (c *wallClock) Now() time.Time { return time.Now().Add(time.Duration(c.off.Load())) }

func (c *wallClock) Uptime() time.Duration { return time.Duration(now()) }
