package casnode_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/clockless"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/casnode"
)

// This file has waiters of a few processes in the queue of one name, and a scheduler
// that decides which of their statements has its effect next, and which answer comes.
// Steps take no time. Time passes only when nobody can make one: so a wake that is lost
// shows in the time of a run.

// scene is one run.
type scene struct {
	shelf *clockless.Shelf
	began time.Time

	mu      sync.Mutex                      // guards all fields below, and those of its runners
	open    bool                            // nobody waits for the scheduler
	pause   func(process int) time.Duration // how long a step takes then; nil for no time
	gates   []*gate
	dead    map[int]bool // processes
	frozen  map[int]time.Duration
	callers []*caller
	came    int64 // how many have come
	holder  *caller
	last    node.Token
	wrong   string
	story   []string
}

// gate is a step that the scheduler has to allow.
type gate struct {
	process int
	who     string
	pass    chan struct{}
}

func (s *scene) now() time.Duration { return time.Since(s.began) }

func (s *scene) say(format string, args ...any) {
	s.story = append(s.story, fmt.Sprintf("%8v ", s.now())+fmt.Sprintf(format, args...))
}

// wait has the scheduler decide when a step is made.
func (s *scene) wait(process int, who string) {
	s.mu.Lock()
	if s.open {
		takes := time.Duration(0)
		if s.pause != nil {
			takes = s.pause(process)
		}
		s.mu.Unlock()
		time.Sleep(takes)
		return
	}
	g := &gate{process, who, make(chan struct{})}
	s.gates = append(s.gates, g)
	s.mu.Unlock()
	<-g.pass
}

// counter is where a process has its statements wait.
type counter struct {
	clockless.Placed
	*scene
	process int
}

type actor struct{}

// at executes a statement. Its caller may go before it is executed.
func at[T any](ctx context.Context, c *counter, what string, statement func(near clockless.Placed) (T, error)) (T, error) {
	who, _ := ctx.Value(actor{}).(string)
	near, n := c.Open(), 0
	near.Between = func() {
		n++
		c.wait(c.process, fmt.Sprintf("%s, %s %d", cmp.Or(who, fmt.Sprint("process ", c.process)), what, n))
	}
	type answer struct {
		result T
		err    error
	}
	done := make(chan answer, 1)
	go func() {
		result, err := statement(clockless.Placed{Timed: clockless.Timed{Store: near}})
		done <- answer{result, err}
	}()
	select {
	case a := <-done:
		return a.result, a.err
	case <-ctx.Done():
		return *new(T), ctx.Err()
	}
}

func (c *counter) Read(ctx context.Context, name string) (casnode.Snapshot, error) {
	return at(ctx, c, "read", func(near clockless.Placed) (casnode.Snapshot, error) { return near.Read(context.Background(), name) })
}

func (c *counter) Put(ctx context.Context, p casnode.Place, again bool) (casnode.Snapshot, error) {
	return at(ctx, c, "put", func(near clockless.Placed) (casnode.Snapshot, error) { return near.Put(context.Background(), p, again) })
}

func (c *counter) Drop(ctx context.Context, p casnode.Place) (casnode.Snapshot, error) {
	return at(ctx, c, "drop", func(near clockless.Placed) (casnode.Snapshot, error) { return near.Drop(context.Background(), p) })
}

func (c *counter) Swap(ctx context.Context, seen casnode.Snapshot, w casnode.Write) (done bool, present casnode.Snapshot, err error) {
	present, err = at(ctx, c, "swap", func(near clockless.Placed) (s casnode.Snapshot, err error) {
		done, s, err := near.Swap(context.Background(), seen, w)
		if s.Offset = 0; done {
			s.Offset = 1
		}
		return s, err
	})
	done, present.Offset = present.Offset == 1, 0
	return done, present, err
}

func (c *counter) Hear(ctx context.Context, process string, ready func(), heard func(string)) error {
	return c.Placed.Hear(ctx, process, ready, func(text string) {
		go func() {
			c.wait(c.process, fmt.Sprint("wake of process ", c.process))
			if ctx.Err() == nil {
				heard(text)
			}
		}()
	})
}

// caller is a client that wants the lock some times.
type caller struct {
	*scene
	id, process, times int
	node               *casnode.Node
	wakes              map[string]chan node.Wake
	leave              context.CancelFunc
	leaves, done       bool
}

func (c *caller) String() string { return fmt.Sprint("caller ", c.id) }

func (c *caller) run() {
	for range c.times {
		c.wait(c.process, c.String()+" comes")
		if c.once(); c.leaves {
			break
		}
	}
	c.mu.Lock()
	c.done = true
	c.mu.Unlock()
}

const orderTTL = 3 * time.Second

// once asks until the caller has the lock or leaves, as a client does.
func (c *caller) once() {
	c.mu.Lock()
	c.came++
	came := time.Now().UnixMicro() + c.came
	value := fmt.Sprintf("v%d-%d", c.id, c.came)
	wake := make(chan node.Wake, 10)
	c.wakes[value] = wake
	ctx, leave := context.WithCancel(context.WithValue(context.Background(), actor{}, c.String()))
	c.leave = leave
	c.mu.Unlock()
	defer leave()
	req := node.Request{Op: node.OpAcquire, Name: "job", Value: value, TTL: orderTTL, Fencing: node.Fencing{Token: node.Token(came), Window: window, Retention: time.Minute}, Waiting: node.Waiting{Ticket: came, Wait: true}}
	unsure := false
	for ctx.Err() == nil {
		sent := c.now()
		r, err := c.node.Do(ctx, req)
		if err != nil {
			unsure = unsure || !errors.Is(err, node.ErrUnsent)
			continue
		}
		var delay time.Duration
		switch {
		case r.Status == node.Granted:
			c.hold(req, sent)
			req.Op = node.OpRelease
			c.release(ctx, req)
			return
		case r.Status == node.Stale:
			req.Token = r.Fence + 1
			continue
		case r.Rank == 0 || !r.Wakes:
			delay = 5 * time.Millisecond * time.Duration(max(r.Rank, 1))
		case r.Rank <= 2:
			delay = 400 * time.Millisecond
		default:
			delay = 900 * time.Millisecond
		}
		if r.Status == node.Held && r.Rank == 1 {
			delay = min(delay, r.Left+time.Millisecond)
		}
		if r.Status == node.Reserved && r.Left > 0 {
			delay = min(delay, r.Left+time.Millisecond)
		}
		c.mu.Lock()
		c.say("%v: %v, place %d, again in %v", c, r.Status, r.Rank, delay)
		c.mu.Unlock()
		select {
		case w := <-wake:
			req.Token = max(req.Token, w.Fence+1)
		case <-time.After(delay):
			req.Token = max(req.Token, r.Fence+1)
		case <-ctx.Done():
		}
	}
	req.Op = node.OpRelease
	if unsure && c.id%2 == 0 { // the fence is enough
		req.NoRepair = 2 * window
	}
	c.release(context.WithValue(context.Background(), actor{}, c.String()), req)
}

// hold notes that the caller has the lock, for one step.
func (c *caller) hold(req node.Request, sent time.Duration) {
	c.mu.Lock()
	c.say("%v has it, token %d", c, req.Token-node.Token(c.began.UnixMicro()))
	if c.holder != nil && !c.dead[c.holder.process] {
		c.wrong = cmp.Or(c.wrong, fmt.Sprintf("%v and %v have it", c.holder, c))
	}
	if req.Token <= c.last {
		c.wrong = cmp.Or(c.wrong, "a token is not above the last one")
	}
	c.holder, c.last = c, req.Token
	c.mu.Unlock()
	c.wait(c.process, c.String()+" holds")
	c.mu.Lock()
	c.holder = nil
	c.mu.Unlock()
}

// release asks until it is answered.
func (c *caller) release(ctx context.Context, req node.Request) {
	ctx = context.WithoutCancel(ctx)
	for range 3 {
		_, err := c.node.Do(ctx, req)
		if err == nil {
			return
		}
		c.mu.Lock()
		c.wrong = cmp.Or(c.wrong, fmt.Sprintf("a release of %v: %v", c, err))
		c.mu.Unlock()
	}
}

// order decides what comes next.
type order struct {
	preempts, faults int // how many are left
	pick             func(n int) int
	kills            bool
}

// play plays a scene: each caller is in one of the processes.
func play(processes []int, times int, o *order) (s *scene, took time.Duration) {
	s = &scene{shelf: clockless.New(nil), began: time.Now(), open: true, dead: map[int]bool{}, frozen: map[int]time.Duration{}}
	ctx := context.Background()
	nodes := map[int]*casnode.Node{}
	for i, p := range processes {
		c := &caller{scene: s, id: i, process: p, times: times, wakes: map[string]chan node.Wake{}}
		if nodes[p] == nil {
			shelf := s.shelf.Open()
			n := casnode.New(&counter{clockless.Placed{Timed: clockless.Timed{Store: shelf}}, s, p}, nil)
			nodes[p] = n
			n.Listen(func(w node.Wake) {
				s.mu.Lock()
				defer s.mu.Unlock()
				for _, c := range s.callers {
					for value, ch := range c.wakes {
						if c.process == p && (w.Kind == node.WakeTurn || w.Kind == node.WakeCall) && w.Value == value {
							select {
							case ch <- w:
							default:
							}
						}
					}
				}
			})
			// It hears, and lives.
			for _, op := range []node.Op{node.OpAcquire, node.OpRelease} {
				for _, v := range []string{"a", "b"} {
					_, _ = n.Do(ctx, node.Request{Op: op, Name: fmt.Sprint("other ", p), Value: v, TTL: time.Minute, Fencing: node.Fencing{Token: node.Token(time.Now().UnixMicro()), Window: window, Retention: time.Minute}, Waiting: node.Waiting{Ticket: 1, Wait: true}})
				}
			}
		}
		c.node = nodes[p]
		s.mu.Lock()
		s.callers = append(s.callers, c)
		s.mu.Unlock()
	}
	synctest.Wait()
	s.open = false
	for _, c := range s.callers {
		go c.run()
	}
	s.schedule(o)
	took = s.now()
	s.mu.Lock()
	s.open = true
	for _, c := range s.callers {
		if c.leave != nil {
			c.leaves = true
			c.leave()
		}
	}
	for _, g := range s.gates {
		close(g.pass)
	}
	s.gates = nil
	s.mu.Unlock()
	synctest.Wait()
	time.Sleep(10 * time.Second)
	for _, n := range nodes {
		_ = n.Close()
	}
	return s, took
}

// tooLong is when a run has failed.
const tooLong = 20 * time.Second

// schedule makes steps until all callers are done.
func (s *scene) schedule(o *order) {
	last := ""
	for {
		synctest.Wait()
		s.mu.Lock()
		waiting := slices.ContainsFunc(s.callers, func(c *caller) bool { return !c.done && !s.dead[c.process] })
		if !waiting || s.wrong != "" {
			s.mu.Unlock()
			return
		}
		if s.now() > tooLong {
			s.wrong = "somebody waits for good"
			s.mu.Unlock()
			return
		}
		type step struct {
			name string
			do   func()
		}
		var steps []step
		for _, g := range s.gates {
			if !s.dead[g.process] && s.frozen[g.process] <= s.now() {
				steps = append(steps, step{g.who, func() {
					s.gates = slices.DeleteFunc(s.gates, func(x *gate) bool { return x == g })
					close(g.pass)
				}})
			}
		}
		actorOf := func(name string) string { name, _, _ = strings.Cut(name, ","); return name }
		slices.SortStableFunc(steps, func(a, b step) int {
			mine := func(x step) int {
				if actorOf(x.name) == last {
					return 0
				}
				return 1
			}
			return cmp.Or(cmp.Compare(mine(a), mine(b)), cmp.Compare(a.name, b.name))
		})
		if len(steps) > 1 && o.preempts == 0 && actorOf(steps[0].name) == last {
			steps = steps[:1]
		}
		many := len(steps)
		if o.faults > 0 && many > 0 {
			for _, c := range s.callers {
				if c.leave != nil && !c.done && !c.leaves && s.holder != c && !s.dead[c.process] {
					steps = append(steps, step{c.String() + " leaves", func() { c.leaves = true; c.leave(); o.faults-- }})
				}
			}
			if o.kills {
				for p := range 4 {
					left := slices.ContainsFunc(s.callers, func(c *caller) bool { return c.process != p && !c.done && !s.dead[c.process] })
					if left && !s.dead[p] && slices.ContainsFunc(s.callers, func(c *caller) bool { return c.process == p && !c.done }) {
						steps = append(steps, step{fmt.Sprint("process ", p, " dies"), func() { s.dead[p] = true; o.faults-- }})
						steps = append(steps, step{fmt.Sprint("process ", p, " is frozen"), func() { s.frozen[p] = s.now() + time.Second; o.faults-- }})
					}
				}
			}
		}
		if len(steps) == 0 {
			s.mu.Unlock()
			time.Sleep(time.Millisecond)
			continue
		}
		i := 0
		if len(steps) > 1 {
			i = o.pick(len(steps))
		}
		if i < many {
			if i > 0 && actorOf(steps[0].name) == last {
				o.preempts--
			}
			last = actorOf(steps[i].name)
		}
		s.say("%s", steps[i].name)
		steps[i].do()
		s.mu.Unlock()
	}
}

// explore plays all orders with a number of pre-emptions and faults, up to a number.
func explore(t *testing.T, processes []int, times, preempts, faults int, kills bool, most int, bound time.Duration) {
	var path, sizes []int
	runs, longest := 0, time.Duration(0)
	for ; runs < most; runs++ {
		depth := 0
		o := &order{preempts: preempts, faults: faults, kills: kills, pick: func(n int) int {
			if depth == len(path) {
				path, sizes = append(path, 0), append(sizes, n)
			}
			sizes[depth] = n
			i := min(path[depth], n-1)
			depth++
			return i
		}}
		judge(t, processes, times, o, bound, fmt.Sprint(path), &longest)
		if t.Failed() {
			return
		}
		path, sizes = path[:depth], sizes[:depth]
		for len(path) > 0 && path[len(path)-1]+1 >= sizes[len(path)-1] {
			path, sizes = path[:len(path)-1], sizes[:len(path)-1]
		}
		if len(path) == 0 {
			break
		}
		path[len(path)-1]++
	}
	t.Logf("%v, %d times, %d pre-emptions, %d faults, kills %v: %d orders, all of them %v, %v at the most", processes, times, preempts, faults, kills, runs, runs < most, longest)
}

func judge(t *testing.T, processes []int, times int, o *order, bound time.Duration, what string, longest *time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		s, took := play(processes, times, o)
		*longest = max(*longest, took)
		if took > bound {
			s.wrong = cmp.Or(s.wrong, fmt.Sprintf("it took %v, want %v at the most: a wake was lost", took, bound))
		}
		if s.wrong != "" {
			t.Errorf("%v, %s: %s\n%s", processes, what, s.wrong, strings.Join(s.story[max(0, len(s.story)-200):], "\n"))
		}
	})
}

// noPoll is a bound for runs in which nobody is dead or frozen. Who is refused three times
// pauses. Nobody has to look whether others take what is free: that takes 50 ms or more.
const noPoll = 40 * time.Millisecond

// latePut is for a waiter that left before its place was put: the others see that it does
// not take what is free, and keep it for that one. Its process hears that, and passes it on.
const latePut = 60 * time.Millisecond

func TestEveryOrderOfStatements(t *testing.T) {
	explore(t, []int{0, 1}, 1, 1, 0, false, 4500, noPoll)
	explore(t, []int{0, 1}, 1, 0, 1, false, 4500, noPoll+latePut)
	explore(t, []int{0, 1, 0}, 1, 0, 0, false, 1000, noPoll)
	explore(t, []int{0, 1, 2}, 1, 0, 0, false, 1000, noPoll)
	explore(t, []int{0, 1}, 1, 0, 1, true, 1000, orderTTL+1600*time.Millisecond)
}

// TestRandomOrderOfStatements has orders from seeds, of more waiters, some of which
// leave, or die, or stop for a second.
func TestRandomOrderOfStatements(t *testing.T) {
	from, count := check.Seeds(t, 1, 500)
	longest := map[string]*time.Duration{}
	for seed := from; seed < from+count && !t.Failed(); seed++ {
		rng := rand.New(rand.NewPCG(seed, 42))
		processes := [][]int{{0, 1}, {0, 1, 0}, {0, 1, 2}, {0, 1, 0, 1}, {0, 1, 2, 0}}[rng.IntN(5)]
		o := &order{preempts: 1 << 20, faults: rng.IntN(3), kills: rng.IntN(2) == 0, pick: func(n int) int {
			if rng.IntN(3) > 0 {
				return 0
			}
			return rng.IntN(n)
		}}
		bound := noPoll + time.Duration(o.faults)*latePut
		if o.kills && o.faults > 0 {
			bound = orderTTL + time.Duration(o.faults)*1200*time.Millisecond
		}
		what := fmt.Sprintf("%d faults, kills %v", o.faults, o.kills)
		if longest[what] == nil {
			longest[what] = new(time.Duration)
		}
		judge(t, processes, 2, o, bound, fmt.Sprint("seed ", seed), longest[what])
	}
	for what, d := range longest {
		t.Log(what, *d)
	}
}

// TestWakeDoesNotEndWhatATimerStandsFor has a row in a wake that refers to a timer: it
// does not say which timers run.
func TestWakeDoesNotEndWhatATimerStandsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shelf := clockless.New(nil)
		var nodes []*casnode.Node
		for range 2 {
			n := casnode.New(clockless.Placed{Timed: clockless.Timed{Store: shelf.Open()}}, nil)
			defer n.Close()
			n.Listen(func(node.Wake) {})
			nodes = append(nodes, n)
		}
		token := node.Token(time.Now().UnixMicro())
		do := func(n *casnode.Node, op node.Op, value string, wait bool, share node.Share) node.Reply {
			token++
			r, err := n.Do(t.Context(), node.Request{Op: op, Name: "job", Value: value, Share: share, TTL: time.Minute, Fencing: node.Fencing{Token: token, Window: window, Retention: time.Minute}, Waiting: node.Waiting{Ticket: int64(token), Wait: wait}})
			check.Must(t, err)
			return r
		}
		slots := node.Share{Mode: node.Slotted, Slots: 2}
		do(nodes[0], node.OpAcquire, "first", false, slots)
		second := do(nodes[0], node.OpAcquire, "second", false, slots).Share
		do(nodes[0], node.OpAcquire, "refused", false, slots) // leaves a timer
		for range 2 {
			do(nodes[1], node.OpAcquire, "waiter", true, slots) // the first time, it begins to hear
			synctest.Wait()
		}
		do(nodes[0], node.OpRelease, "second", false, second)
		synctest.Wait()
		r := do(nodes[1], node.OpAcquire, "waiter", true, slots)
		if r.Status != node.Granted || r.Share != second {
			t.Errorf("%v, %v; want %v, beside the first", r.Status, r.Share, second)
		}
	})
}
