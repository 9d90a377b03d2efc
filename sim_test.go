package redlatch_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/memory"
)

// TestNoScheduleBreaksExclusion runs clients on nodes in memory, in virtual
// time, over a network that delays, loses and reorders, with callers that give
// up, barge, or wait for so long. The seed decides all but the order in which
// goroutines run. REDLATCH_SEEDS=FROM:COUNT runs others; make sim does.
func TestNoScheduleBreaksExclusion(t *testing.T) {
	from, count := 1, 150
	if s := os.Getenv("REDLATCH_SEEDS"); s != "" {
		if n, err := fmt.Sscanf(s, "%d:%d", &from, &count); n != 2 || err != nil {
			t.Fatalf("REDLATCH_SEEDS is %q: it must be FROM:COUNT", s)
		}
	}
	for seed := from; seed < from+count; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newWorld(t, uint64(seed)).run() })
		})
	}
}

// world is one simulation.
type world struct {
	t        *testing.T
	seed     uint64
	nodes    []*memory.Node
	clients  []*redlatch.Client
	roads    []*road
	noToken  bool
	faulty   bool
	underway sync.WaitGroup // messages

	mu     sync.Mutex
	leases []*redlatch.Lease // every one there was
	since  []time.Time       // when it was had
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, seed: seed}
	random := w.random(0)
	for i := range []int{1, 2, 3, 3, 4, 5, 5}[random.IntN(7)] {
		w.nodes = append(w.nodes, memory.New(memory.Options{Name: strconv.Itoa(i + 1)}))
	}
	w.noToken = random.IntN(5) == 0
	w.faulty = random.IntN(3) > 0
	for i := range 2 + random.IntN(6) {
		var nodes []redlatch.Node
		for j, n := range w.nodes {
			r := &road{Node: n, random: w.random(100 + 20*i + j), underway: &w.underway,
				length: time.Duration(1+random.IntN(8)) * time.Millisecond, faulty: w.faulty}
			w.roads = append(w.roads, r)
			nodes = append(nodes, r)
		}
		w.clients = append(w.clients, newClient(t, nodes, redlatch.Options{NoToken: w.noToken, TTL: 30 * time.Second}))
	}
	return w
}

// random returns the source of chance of one part of the world.
func (w *world) random(part int) *rand.Rand { return rand.New(rand.NewPCG(w.seed, uint64(part))) }

func (w *world) run() {
	var all sync.WaitGroup
	for i := range 3 * len(w.clients) {
		all.Go(func() { w.call(w.clients[i%len(w.clients)], w.random(5000+i)) })
	}
	time.AfterFunc(3*time.Second, func() {
		for _, r := range w.roads {
			r.mend()
		}
	})
	served := make(chan struct{})
	go func() {
		all.Wait()
		close(served)
	}()
	select {
	case <-served:
	case <-time.After(time.Minute):
		for _, n := range w.nodes {
			w.t.Logf("%v: held by %q", n, w.holder(n))
		}
		w.t.Fatal("somebody is not served a minute after the last fault")
	}
	time.Sleep(10 * time.Second)
	for _, n := range w.nodes {
		// Without tokens a late request may leave a key, as is documented.
		if v := w.holder(n); v != "" && !w.noToken {
			w.t.Errorf("%v has a ghost: %q", n, v)
		}
	}
	for _, c := range w.clients {
		c.Close()
	}
	w.underway.Wait()
}

// call asks for the lock a few times, in one way or another.
func (w *world) call(c *redlatch.Client, random *rand.Rand) {
	for range 4 {
		time.Sleep(upTo(random, 300*time.Millisecond))
		ctx, cancel := context.WithCancel(context.Background())
		if random.IntN(5) == 0 {
			ctx, cancel = context.WithTimeout(ctx, upTo(random, time.Second))
		}
		var opts redlatch.LockOptions
		switch random.IntN(12) {
		case 0:
			opts.Barge = true
		case 1:
			opts.Tries = 1 + random.IntN(4)
		case 2:
			opts.Wait = time.Millisecond + upTo(random, time.Second)
		}
		began := time.Now()
		l, err := c.Lock(ctx, "job", opts)
		cancel()
		if err != nil {
			continue
		}
		w.check(l, began)
		time.Sleep(upTo(random, 20*time.Millisecond))
		if err := l.Release(context.Background()); err != nil && !w.faulty {
			w.t.Errorf("nothing went wrong, and yet: %v", err)
		}
	}
}

// check holds a lease that was just had against all that were had before.
func (w *world) check(l *redlatch.Lease, began time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	have := 0
	for _, n := range w.nodes {
		if w.holder(n) == valueOf(l) {
			have++
		}
	}
	if have < len(w.nodes)/2+1 {
		w.t.Errorf("a lease stands on %d of %d nodes", have, len(w.nodes))
	}
	for i, other := range w.leases {
		if other.Err() == nil {
			w.t.Error("two leases are valid at once")
		}
		if w.noToken {
			continue
		}
		if other.Token() == l.Token() || !w.since[i].After(began) && other.Token() > l.Token() {
			w.t.Errorf("token %v was had after %v", l.Token(), other.Token())
		}
	}
	w.leases, w.since = append(w.leases, l), append(w.since, time.Now())
}

func (w *world) holder(n *memory.Node) string {
	reply, err := n.Do(context.Background(), redlatch.Request{Op: redlatch.OpInspect, Name: "job"})
	if err != nil {
		w.t.Fatal(err)
	}
	return reply.Value
}

// valueOf returns a lease's value, which its handle carries.
func valueOf(l *redlatch.Lease) string {
	_, encoded, _ := strings.Cut(l.Handle(), ".")
	plain, _ := base64.RawURLEncoding.DecodeString(encoded)
	var h struct{ Value string }
	json.Unmarshal(plain, &h)
	return h.Value
}

func upTo(random *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(d)))
}

// road is a client's way to a node.
type road struct {
	*memory.Node
	length   time.Duration
	underway *sync.WaitGroup

	mu     sync.Mutex
	random *rand.Rand
	faulty bool
}

func (r *road) ReturnsByDeadline() bool { return true }

func (r *road) mend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faulty = false
}

// trip returns how long a message is on its way.
func (r *road) trip() time.Duration { return r.length/2 + upTo(r.random, r.length) }

func (r *road) Listen(f func(redlatch.Wake)) (stop func()) {
	return r.Node.Listen(func(w redlatch.Wake) {
		r.mu.Lock()
		trip, lost := r.trip(), r.faulty && r.random.IntN(10) == 0
		r.mu.Unlock()
		if lost {
			return
		}
		r.underway.Go(func() {
			time.Sleep(trip)
			f(w)
		})
	})
}

func (r *road) Do(ctx context.Context, req redlatch.Request) (redlatch.Reply, error) {
	r.mu.Lock()
	out, back := r.trip(), r.trip()
	var lost, unsent, deaf bool
	if r.faulty {
		const long = 600 * time.Millisecond // more than the node time limit
		switch r.random.IntN(20) {
		case 0:
			lost = true
		case 1:
			unsent = true
		case 2, 3:
			out += upTo(r.random, long)
		case 4, 5:
			back += upTo(r.random, long)
		case 6:
			deaf = true
			back += upTo(r.random, long)
		}
	}
	r.mu.Unlock()
	if unsent {
		time.Sleep(out)
		return redlatch.Reply{}, fmt.Errorf("connection refused (%w)", redlatch.ErrUnsent)
	}
	var reply redlatch.Reply
	var err error
	answered := make(chan struct{})
	r.underway.Go(func() {
		defer close(answered)
		time.Sleep(out)
		reply, err = r.Node.Do(context.Background(), req)
		time.Sleep(back)
		if lost {
			reply, err = redlatch.Reply{}, errLostReply
		}
	})
	done := ctx.Done()
	if deaf {
		done = nil
	}
	select {
	case <-answered:
		return reply, err
	case <-done:
		return redlatch.Reply{}, ctx.Err()
	}
}
