package direct

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/redis/internal/conns"
)

// mostLate is how many replies in a row may come too late.
const mostLate = 2

var errBehind = errors.New("redlatch: every reply comes too late, as if one had been lost")

// isBehind counts the reply that has arrived, and reports whether the connection is of
// no use: if a reply is lost on its way, each request gets the reply of the one
// before it, when that one was given up. Replies of what was sent together count once,
// since a server or this process may have been stalled. The mutex is held.
func (c *conn) isBehind() bool {
	switch r := c.pending.at(0); {
	case !r.givenUp:
		c.late = 0
	case c.late == 0 || r.heard >= c.since:
		c.late++
		c.since = c.heard
	}
	return c.late == mostLate
}

// arm has the timer fire at that time at the latest. The mutex is held.
func (c *conn) arm(at time.Duration) {
	if at == 0 || c.armed != 0 && c.armed <= at {
		return
	}
	c.armed = at
	left := max(at-time.Since(began), time.Millisecond)
	if c.timer == nil {
		c.timer = time.AfterFunc(left, c.expire)
	} else {
		c.timer.Reset(left)
	}
}

// leastSilence is how long a connection must be silent at least to be given up.
const leastSilence = 50 * time.Millisecond

// expire gives up the requests that have no reply in time. If nothing has
// arrived since one of them was sent, and for the same time again, the
// connection went silent: a firewall or a NAT that forgets a connection drops
// what is sent on it, and neither end is notified. The second half is for a
// process that was stalled, and has yet to read what arrived.
func (c *conn) expire() {
	now := time.Since(began)
	var late []request
	silent := false
	c.mu.Lock()
	c.armed = 0
	for i := range c.pending.len() {
		r := c.pending.at(i)
		if r.deadline == 0 {
			continue
		}
		if !r.givenUp && r.deadline <= now {
			late = append(late, *r)
			r.givenUp, r.silent = true, now+max(r.limit, leastSilence)
		}
		switch {
		case !r.givenUp:
			c.arm(r.deadline)
		case r.heard != c.heard:
		case r.silent <= now:
			silent = true
		default:
			c.arm(r.silent)
		}
	}
	connecting := c.socket == nil
	c.mu.Unlock()
	err := error(context.DeadlineExceeded)
	if connecting {
		err = fmt.Errorf("%w while connecting (%w)", err, node.ErrUnsent)
	}
	for i := range late {
		late[i].failed(err)
	}
	if silent {
		c.fail(conns.ErrSilent)
	}
}
