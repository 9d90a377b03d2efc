//go:build unix

package beside

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch/test/interop/foreign"
)

// Player is a process of a side.
type Player struct {
	Side string
	*foreign.Process
	// Renews is set if it extends its locks by itself.
	Renews bool
}

// Take asks for a lock, and returns what was granted; an error with the answer
// otherwise.
func (p *Player) Take(name string, ttl, wait time.Duration, kind string) (token uint64, slot int, err error) {
	return Granted(p.Order("acquire", name, strconv.FormatInt(ttl.Milliseconds(), 10), strconv.FormatInt(wait.Milliseconds(), 10), kind))
}

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

// Contest is a lock that players contend for.
type Contest struct {
	Judge   *Judge
	Players []*Player
	Name    string
	TTL     time.Duration
	Kinds   []string // of which each acquisition takes one; none for the whole lock
	// It ends after For, when each side has had the lock so many Turns; after
	// Limit in any case. It also ends with the first fault.
	For, Limit time.Duration
	Turns      int
}

// Play has the players contend, and returns the answers that were errors.
func (c *Contest) Play() []string {
	var all sync.WaitGroup
	var mu sync.Mutex
	var errs []string
	began := time.Now()
	for _, p := range c.Players {
		all.Go(func() {
			for !c.over(began) {
				if err := c.turn(p); err != "" {
					mu.Lock()
					errs = append(errs, p.Side+": "+err)
					mu.Unlock()
					time.Sleep(10 * time.Millisecond)
				}
			}
		})
	}
	all.Wait()
	return errs
}

func (c *Contest) over(began time.Time) bool {
	gone := time.Since(began)
	if gone > c.Limit || len(c.Judge.Faults()) > 0 {
		return true
	}
	for _, p := range c.Players {
		if c.Judge.Turns(p.Side) < c.Turns {
			return false
		}
	}
	return gone > c.For
}

// turn has a player take the lock and release it. It returns an answer that is
// an error.
func (c *Contest) turn(p *Player) string {
	kind := ""
	if len(c.Kinds) > 0 {
		kind = c.Kinds[rand.IntN(len(c.Kinds))]
	}
	h := c.Judge.Begin(p.Side, kind)
	token, slot, err := p.Take(c.Name, c.TTL, 10*time.Second, kind)
	if err != nil {
		// A client that does not wait asks again soon.
		time.Sleep(time.Duration(5+rand.IntN(20)) * time.Millisecond)
		if strings.Contains(err.Error(), "held") {
			return ""
		}
		return err.Error()
	}
	c.Judge.Enter(h, token, slot)
	c.work(p)
	c.Judge.Leave(h)
	valid := p.Order("valid")
	c.Judge.Settle(h, valid.OK())
	if a := p.Order("release"); !a.OK() && a.Word != "lost" {
		return "release: " + a.String()
	}
	// Sometimes nobody waits: then other parts of the scripts do the work.
	pause := 5
	if rand.IntN(4) == 0 {
		pause = 100
	}
	time.Sleep(time.Duration(rand.IntN(pause)) * time.Millisecond)
	return ""
}

// work takes a moment; sometimes so long that the lock must be extended.
func (c *Contest) work(p *Player) {
	if rand.IntN(60) > 0 {
		time.Sleep(time.Duration(rand.IntN(4)) * time.Millisecond)
		return
	}
	for range 3 {
		time.Sleep(c.TTL / 5)
		if !p.Renews {
			p.Order("extend", strconv.FormatInt(c.TTL.Milliseconds(), 10))
		}
	}
}
