package protocol

import (
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
)

// passView is a client at one moment.
type passView struct {
	View
	now Instant
}

func (v passView) Now() Instant { return v.now }

// TestLeaseIsPassedOnOnlyByTheRules has a lease that may be passed on to a waiter,
// and then breaks one rule at a time.
func TestLeaseIsPassedOnOnlyByTheRules(t *testing.T) {
	const now = time.Hour
	for name, breaks := range map[string]func(c *Claim, w *Waiter, cfg *Config){
		"":                                nil,
		"it came when the round was sent": func(c *Claim, w *Waiter, _ *Config) { w.Came = c.pass.from },
		"it has no ticket":                func(_ *Claim, w *Waiter, _ *Config) { w.Ticket = 0 },
		"the queues were seen long ago":   func(c *Claim, w *Waiter, _ *Config) { c.pass.from, w.Came = now-freshFor-1, 0 },
		"another has its ticket":          func(c *Claim, w *Waiter, _ *Config) { c.pass.before = w.Ticket },
		"another has a lower ticket":      func(c *Claim, w *Waiter, _ *Config) { c.pass.before = w.Ticket - 1 },
		"no token is left":                func(c *Claim, _ *Waiter, _ *Config) { c.pass.next = c.pass.last + 1 },
		"no token was reserved":           func(c *Claim, _ *Waiter, _ *Config) { c.pass.next, c.pass.last = 0, 0 },
		"less than half is left":          func(c *Claim, _ *Waiter, _ *Config) { c.lease.deadline = now + 5*time.Second - 1 },
		"it ends by MaxHold":              func(c *Claim, _ *Waiter, _ *Config) { c.lease.deadline = c.HoldUntil() },
		"it is a reader's":                func(c *Claim, _ *Waiter, _ *Config) { c.share.Mode = node.Shared },
		"it was barred":                   func(c *Claim, _ *Waiter, _ *Config) { c.pass.barred = true },
		"it was released":                 func(c *Claim, _ *Waiter, _ *Config) { c.state = Releasing },
		"it was passed on 64 times":       func(c *Claim, _ *Waiter, _ *Config) { c.pass.passes = 64 },
		"it was passed on for 100 ms":     func(c *Claim, _ *Waiter, _ *Config) { c.pass.passes, c.pass.since = 1, now-100*time.Millisecond },
		"neither is kept alive":           func(c *Claim, _ *Waiter, cfg *Config) { c.cfg.KeepAlive, cfg.KeepAlive = false, false },
		"both have Keep":                  func(c *Claim, _ *Waiter, cfg *Config) { c.cfg.Keep, cfg.Keep = time.Second, time.Second },
		"another TTL":                     func(_ *Claim, _ *Waiter, cfg *Config) { cfg.TTL++ },
		"another MaxHold":                 func(_ *Claim, _ *Waiter, cfg *Config) { cfg.MaxHold++ },
		"another share":                   func(_ *Claim, _ *Waiter, cfg *Config) { cfg.Share.Mode = node.Shared },
	} {
		cfg := Config{Nodes: 3, TTL: 10 * time.Second, MaxHold: time.Hour, KeepAlive: true}
		c := Claim{cfg: cfg, state: Held, token: 5, lease: lease{acquired: now - time.Second, deadline: now + 5*time.Second}}
		c.pass = passing{next: 10, last: 11, from: now - time.Millisecond, before: 101}
		w := Waiter{Came: c.pass.from - 1, Ticket: 100, Config: &cfg}
		if breaks != nil {
			breaks(&c, &w, &cfg)
		}
		v := passView{now: now}
		if may := c.MayPass(v, w); may != (name == "") {
			t.Errorf("%q: may be passed on: %v", name, may)
		}
		var out Ready
		c.Handle(v, &Event{Kind: Pass, Waiter: w}, &out)
		if name != "" {
			if len(out.News) != 0 || c.lease.cause == WasPassed {
				t.Errorf("%q: it was passed on", name)
			}
			continue
		}
		heir := c
		heir.Inherit(v)
		if c.State() != Gone || c.Cause() != WasPassed || c.Token() != 5 || len(out.News) != 1 || out.News[0] != Ended {
			t.Errorf("the lease is %v, %v, with token %d, and %v", c.State(), c.Cause(), c.Token(), out.News)
		}
		if heir.State() != Held || heir.Token() != 10 || heir.Deadline() != now+5*time.Second || heir.Acquired() != now || heir.pass.next != 11 || heir.pass.passes != 1 {
			t.Errorf("the next one is %v, with token %d, until %v", heir.State(), heir.Token(), heir.Deadline())
		}
	}
}

// TestTokensAreReservedByAQuorum has two of five nodes reserve, and then a third.
func TestTokensAreReservedByAQuorum(t *testing.T) {
	c := Claim{cfg: Config{Nodes: 5}, round: Round{Op: node.OpExtend, Start: 7}}
	c.pass = passing{token: 20, reserve: 3}
	for i, next := range []int64{0, 90, 80} {
		answer := Event{Kind: Answer, Node: i, Reply: node.Reply{Status: node.Granted, Confirmed: true, Queued: node.Queued{Next: next}}}
		for range 2 { // a copy counts once
			c.confirm(&answer)
		}
		answer.Node, answer.Reply.Confirmed = 4, false
		c.confirm(&answer)
		c.takeReserve()
		if taken := c.pass.last != 0; taken != (i == 2) {
			t.Errorf("%d of 5 nodes reserved tokens: taken %v", i+1, taken)
		}
	}
	if p := c.pass; p.next != 21 || p.last != 23 || p.from != 7 || p.before != 80 {
		t.Errorf("reserved are %d to %d, for callers that came before %v, with tickets below %d", p.next, p.last, p.from, p.before)
	}
}
