// Package observed has histories for nodes whose clock is observed, on real servers:
// see node/casnode.
package observed

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/inside"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/casnode"
)

// Rounds is how often a history is repeated: REDLATCH_ROUNDS, if it is set.
func Rounds(few int) int {
	if n, err := strconv.Atoi(os.Getenv("REDLATCH_ROUNDS")); err == nil {
		return n
	}
	return few
}

// WallClock has a node be in a process whose wall clock is off. A node reads the wall
// clock once, when it is made, and its uptime with it.
func WallClock(off time.Duration) *casnode.Options {
	start, made := time.Now(), atomic.Bool{}
	return &casnode.Options{Uptime: func() time.Duration {
		up := 1000*time.Hour + time.Since(start)
		if made.Swap(true) {
			up += off
		}
		return up
	}}
}

// WallClocks has clients contend for a lock whose wall clocks are hours apart. open
// returns a node with a clock, in a process of its own. Each client gets its turn.
func WallClocks(t *testing.T, open func(clock *casnode.Options) node.Node) {
	t.Helper()
	var rivals []Rival
	for _, off := range []time.Duration{0, 3 * time.Hour, -5 * time.Hour, 26 * time.Hour} {
		rivals = append(rivals, Rival{open(WallClock(off)), off})
	}
	if all, least := Contend(t, rivals, 10*Rounds(2), func() bool { return true }); least < all/20 {
		t.Errorf("of %d leases one rival had %d", all, least)
	}
}

// wallClock is the clock of a client whose wall clock is off.
type wallClock struct {
	start time.Time
	off   time.Duration
}

func (c wallClock) Now() time.Time        { return time.Now().Add(c.off) }
func (c wallClock) Uptime() time.Duration { return time.Since(c.start) }

// Rival is a client that contends for a lock, with a wall clock that is off. The node
// must have a wall clock that is off as much.
type Rival struct {
	Node redlatch.Node
	Off  time.Duration
}

// judge notes the leases.
type judge struct {
	start  time.Time
	mu     sync.Mutex // guards all fields below
	leases []int      // by rival
	held   []*exclusion.Lease
}

// had notes a lease that is over. One that was over before it was seen shows nothing.
func (j *judge) had(who int, h *exclusion.Lease) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if h.Until > h.Got {
		j.held = append(j.held, h)
		j.leases[who]++
	}
}

// least is how many leases each rival had at least.
func (j *judge) least() (all, least int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	least = j.leases[0]
	for _, n := range j.leases {
		all, least = all+n, min(least, n)
	}
	return all, least
}

const patience = 5 * time.Minute

// Contend has clients contend for one lock until there were so many leases, each client
// had one, and enough says so. There must never be two holders, and tokens must grow.
// It returns how many leases there were, and how many the rival had that had the fewest.
func Contend(t *testing.T, rivals []Rival, leases int, enough func() bool) (sum, least int) {
	t.Helper()
	j := &judge{start: time.Now(), leases: make([]int, len(rivals))}
	done := func() bool {
		all, least := j.least()
		return all >= leases && least > 0 && enough()
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			if done() {
				cancel()
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	var all sync.WaitGroup
	for i, r := range rivals {
		opts := &redlatch.Options{Cluster: redlatch.Cluster{MaxTTL: 5 * time.Second}}
		inside.SetNoHandOver(opts)
		inside.SetClock(opts, wallClock{time.Now(), r.Off})
		c, err := redlatch.New([]redlatch.Node{r.Node}, opts)
		check.Must(t, err)
		all.Go(func() {
			defer c.Close()
			for ctx.Err() == nil {
				hold(ctx, j, i, c)
			}
		})
	}
	all.Wait()
	t.Logf("leases by rival: %v", j.leases)
	for _, f := range exclusion.Judge(j.held) {
		exclusion.Never(t, "%s: %s", f.Rule, f.Text)
	}
	if context.Cause(ctx) == context.DeadlineExceeded {
		t.Errorf("they are too few after %v", patience)
	}
	return j.least()
}

// hold acquires the lock and has it for a moment.
func hold(ctx context.Context, j *judge, who int, c *redlatch.Client) {
	asked := time.Since(j.start)
	l, err := c.Lock(ctx, "job", &redlatch.LockOptions{TTL: 3 * time.Second})
	if err != nil {
		time.Sleep(20 * time.Millisecond)
		return
	}
	now := time.Since(j.start)
	h := &exclusion.Lease{Who: fmt.Sprint("rival ", who), Token: uint64(l.Token()), Asked: int64(asked), Got: int64(now), Until: int64(now + l.Remaining())}
	for range 10 {
		time.Sleep(20 * time.Millisecond)
		if l.Err() != nil {
			break
		}
		h.Until = int64(time.Since(j.start) + l.Remaining())
	}
	h.Until = min(h.Until, int64(time.Since(j.start)))
	j.had(who, h)
	_ = l.Release(context.WithoutCancel(ctx)) // it may be lost
}

// Newcomer has a client that has never seen a lock extend it for as long as it was
// taken for, after another one has observed it for most of its time: the bytes that
// count are the same. open returns a node in a process of its own.
func Newcomer(t *testing.T, open func() node.Node) {
	t.Helper()
	for round := range Rounds(1) {
		shown := false
		for try := 0; try < 30 && !shown; try++ { // a busy machine may extend too late
			shown = extends(t, fmt.Sprintf("job %d.%d", round, try), open)
		}
		if !shown {
			t.Fatal("each extension came too late")
		}
	}
}

// extends reports whether the extension came in time.
func extends(t *testing.T, name string, open func() node.Node) bool {
	const ttl = 2 * time.Second
	a, b, c := open(), open(), open()
	do := func(n node.Node, op node.Op, name, value string) node.Status {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r, err := n.Do(ctx, node.Request{Op: op, Name: name, Value: value, TTL: ttl})
		check.Must(t, err)
		return r.Status
	}
	do(c, node.OpInspect, "other", "") // it connects
	do(a, node.OpAcquire, name, "one")
	do(b, node.OpInspect, name, "")
	time.Sleep(ttl * 6 / 10)
	sent := time.Now()
	if do(c, node.OpExtend, name, "one") != node.Granted {
		return false
	}
	for do(b, node.OpAcquire, name, "two") != node.Granted {
		if took := time.Since(sent); took > time.Minute {
			t.Fatalf("not granted %v after an extension for %v", took, ttl)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if took := time.Since(sent); took < ttl {
		t.Errorf("granted %v after an extension for %v", took, ttl)
	}
	return true
}
