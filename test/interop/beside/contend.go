//go:build unix

package beside

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/test/interop/foreign"
)

// Contender is one that contends for a lock: a process, or a client in this one.
type Contender interface {
	// Take asks for the lock, and returns what was granted. A lock that is held is
	// an error that says so.
	Take(name string, ttl, wait time.Duration, kind string) (token uint64, slot int, err error)
	// Extend renews the lock, unless that happens by itself.
	Extend(ttl time.Duration)
	// Valid reports whether it could rely on the lock until now.
	Valid() bool
	// Release releases the lock. That it was lost is no error.
	Release() error
}

// Times of locks that processes contend for.
const (
	TTL      = 2 * time.Second
	Patience = 40 * time.Second // limits what takes a moment, on a busy machine
)

// Player is a process of a side.
type Player struct {
	Side string
	*foreign.Process
	// Renews is set if it extends its locks by itself.
	Renews bool

	t testing.TB
}

// Start starts a process of a side, which is killed when the test ends.
func Start(t testing.TB, side string, renews bool, argv ...string) *Player {
	t.Helper()
	p, err := foreign.Run(side, argv)
	check.Must(t, err)
	t.Cleanup(p.Kill)
	return &Player{side, p, renews, t}
}

// Get orders a lock, which the process must get.
func (p *Player) Get(name, kind string) uint64 {
	p.t.Helper()
	token, _, err := p.Take(name, TTL, Patience, kind)
	if err != nil {
		p.t.Fatalf("%s does not get the lock: %v", p.Side, err)
	}
	return token
}

// Must sends an order that must succeed, and returns the answer.
func (p *Player) Must(words ...string) string {
	p.t.Helper()
	a := p.Order(words...)
	if !a.OK() {
		p.t.Fatalf("%s: %s: it answers %q", p.Side, words[0], a)
	}
	return a.Text
}

// Cycle orders a lock and its release.
func (p *Player) Cycle(name string) uint64 {
	p.t.Helper()
	token := p.Get(name, "")
	p.Must("release")
	return token
}

// Take asks for a lock, and returns what was granted; an error with the answer
// otherwise.
func (p *Player) Take(name string, ttl, wait time.Duration, kind string) (token uint64, slot int, err error) {
	return Granted(p.Order("acquire", name, strconv.FormatInt(ttl.Milliseconds(), 10), strconv.FormatInt(wait.Milliseconds(), 10), kind))
}

// Extend renews the lock, unless the process does.
func (p *Player) Extend(ttl time.Duration) {
	if !p.Renews {
		p.Process.Extend(ttl)
	}
}

// Valid asks the process.
func (p *Player) Valid() bool { return p.Order("valid").OK() }

// Release releases the lock.
func (p *Player) Release() error { return released(p.Process) }

// Granted takes an answer apart that grants a lock.
func Granted(a foreign.Answer) (token uint64, slot int, err error) {
	words := strings.Fields(a.Text)
	if !a.OK() || len(words) == 0 {
		return 0, 0, fmt.Errorf("it answers %q", a)
	}
	if token, err = strconv.ParseUint(words[0], 10, 64); err == nil && len(words) > 1 {
		slot, err = strconv.Atoi(words[1])
	}
	return token, slot, err
}

func released(p *foreign.Process) error {
	if a := p.Release(); !a.OK() && a.Word != "lost" {
		return fmt.Errorf("release: %s", a)
	}
	return nil
}

// Foreign is a process of a foreign client. It asks once, and its locks have no
// token. It relies on a lock for half of its time to live.
type Foreign struct {
	*foreign.Process
	until time.Time
}

// Take asks for the lock.
func (f *Foreign) Take(name string, ttl, _ time.Duration, _ string) (token uint64, slot int, err error) {
	sent := time.Now()
	if a := f.Acquire(name, ttl); !a.OK() {
		return 0, 0, errors.New(a.String())
	}
	f.until = sent.Add(ttl / 2)
	return 0, 0, nil
}

// Extend renews the lock, if the client can.
func (f *Foreign) Extend(ttl time.Duration) {
	sent := time.Now()
	if f.Process.Extend(ttl).OK() {
		f.until = sent.Add(ttl / 2)
	}
}

// Valid goes by the clock of this process.
func (f *Foreign) Valid() bool { return time.Now().Before(f.until) }

// Release releases the lock.
func (f *Foreign) Release() error { return released(f.Process) }

// Client is a client of redlatch in this process.
type Client struct {
	*redlatch.Client
	lease *redlatch.Lease
}

// Take waits for the lock.
func (c *Client) Take(name string, ttl, wait time.Duration, _ string) (token uint64, slot int, err error) {
	if c.lease, err = c.Lock(context.Background(), name, &redlatch.LockOptions{TTL: ttl, Wait: wait}); err != nil {
		return 0, 0, err
	}
	return uint64(c.lease.Token()), c.lease.Slot(), nil
}

// Extend does nothing: the client extends by itself.
func (c *Client) Extend(time.Duration) {}

// Valid asks the lease.
func (c *Client) Valid() bool { return c.lease.Err() == nil }

// Release releases the lock.
func (c *Client) Release() error {
	err := c.lease.Release(context.Background())
	if errors.Is(err, redlatch.ErrLost) {
		return nil
	}
	return err
}

// Contest is a lock that two sides contend for.
type Contest struct {
	Judge *Judge
	Sides map[string][]Contender
	Name  string
	TTL   time.Duration
	Kinds []string // of which each acquisition takes one; none for the whole lock
	Long  bool     // sometimes a lock is held for so long that it must be extended
	// It ends after For, when each side has had the lock so many Turns or a rule is
	// broken; after Limit in any case.
	For, Limit time.Duration
	Turns      int
}

// Play has both sides contend, and returns the answers that were errors.
func (c *Contest) Play() []string {
	var all sync.WaitGroup
	var mu sync.Mutex
	var errs []string
	began := time.Now()
	for side, contenders := range c.Sides {
		for _, p := range contenders {
			all.Go(func() {
				for !c.over(began) {
					if err := c.turn(side, p); err != nil {
						mu.Lock()
						errs = append(errs, side+": "+err.Error())
						mu.Unlock()
						time.Sleep(10 * time.Millisecond)
					}
				}
			})
		}
	}
	all.Wait()
	return errs
}

// PlayFor plays with processes that contend for three seconds at least, or until a rule
// is broken.
func (c *Contest) PlayFor(t testing.TB) {
	c.TTL, c.Long, c.For, c.Limit, c.Turns = TTL, true, 3*time.Second, time.Minute, 10
	if errs := c.Play(); len(errs) > 0 {
		t.Logf("%d answers were errors, the first: %s", len(errs), errs[0])
	}
	for side := range c.Sides {
		t.Logf("%s had the lock %d times", side, c.Judge.Turns(side))
	}
}

// Check fails for each rule that was broken, and each side that seldom had the lock.
func (c *Contest) Check(t testing.TB) {
	t.Helper()
	for _, f := range c.Judge.Faults() {
		t.Error(f)
	}
	for side := range c.Sides {
		if n := c.Judge.Turns(side); n < c.Turns {
			t.Errorf("%s had the lock %d times", side, n)
		}
	}
}

func (c *Contest) over(began time.Time) bool {
	gone := time.Since(began)
	if gone <= c.For {
		return false
	}
	enough := true
	for side := range c.Sides {
		enough = enough && c.Judge.Turns(side) >= c.Turns
	}
	return enough || gone > c.Limit || len(c.Judge.Faults()) > 0
}

// turn is a contender's lock and its release. It returns an answer that is
// an error.
func (c *Contest) turn(side string, p Contender) error {
	kind := ""
	if len(c.Kinds) > 0 {
		kind = c.Kinds[rand.IntN(len(c.Kinds))]
	}
	h := c.Judge.Begin(side, kind)
	token, slot, err := p.Take(c.Name, c.TTL, 10*time.Second, kind)
	if err != nil {
		// A client that does not wait asks again soon.
		time.Sleep(time.Duration(5+rand.IntN(20)) * time.Millisecond)
		if strings.Contains(err.Error(), "held") {
			return nil
		}
		return err
	}
	c.Judge.Enter(h, token, slot)
	c.work(p)
	c.Judge.Leave(h)
	c.Judge.Settle(h, p.Valid())
	if err := p.Release(); err != nil {
		return err
	}
	// Sometimes nobody waits: then other parts of the scripts do the work.
	pause := 5
	if rand.IntN(4) == 0 {
		pause = 100
	}
	time.Sleep(time.Duration(rand.IntN(pause)) * time.Millisecond)
	return nil
}

// work takes a moment, or longer.
func (c *Contest) work(p Contender) {
	if !c.Long || rand.IntN(60) > 0 {
		time.Sleep(time.Duration(rand.IntN(4)) * time.Millisecond)
		return
	}
	for range 3 {
		time.Sleep(c.TTL / 5)
		p.Extend(c.TTL)
	}
}
