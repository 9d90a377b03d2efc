package direct

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redlatch/redlatch/internal/resp"
	"github.com/redlatch/redlatch/store/redis"
)

// pingEvery is how long a connection with a subscription may be silent before it
// is tested, and pingLimit how long the answer may take.
const (
	pingEvery = 2 * time.Second
	pingLimit = time.Second
)

// subscription is a channel that a connection listens to.
type subscription struct {
	channel string
	pass    func(text string)
	broken  chan error // the connection is broken
}

// errVersion says why there are no messages.
var errVersion = redis.NewServerError("NOPERM redlatch: the server denies HELLO 3, so it cannot notify waiters on this connection: allow the user +hello")

var errBroke = errors.New("redlatch: the connection broke")

// Subscribe listens on the connection of the requests. Their replies show that
// it is alive, so it is tested only if there are none.
func (d *driver) Subscribe(ctx context.Context, channel string, up func(), message func(text string)) error {
	c, err := d.current()
	if err != nil {
		return err
	}
	s := &subscription{channel: channel, pass: message, broken: make(chan error, 1)}
	confirmed := make(chan error, 1)
	if err := c.listen(s, func(_ resp.Reply, err error) { confirmed <- err }); err != nil {
		return err
	}
	defer c.unlisten(s)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-confirmed:
		if err != nil {
			return fmt.Errorf("listening to %s: %w", channel, err)
		}
		up()
	}
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for heard := c.replies(); ; heard = c.replies() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-s.broken:
			return fmt.Errorf("listening to %s: %w", channel, err)
		case <-ticker.C:
		}
		if c.replies() == heard {
			// If there is no answer, the connection is given up.
			c.start(request{command: []string{"PING"}, limit: pingLimit, raw: func(resp.Reply, error) {}})
		}
	}
}

// listen subscribes. It calls answered when the server has confirmed.
func (c *conn) listen(s *subscription, answered func(resp.Reply, error)) error {
	c.mu.Lock()
	switch {
	case c.broken != nil:
		defer c.mu.Unlock()
		return c.broken
	case c.socket == nil:
		defer c.mu.Unlock()
		return errors.New("redlatch: not connected yet")
	case c.version < 3:
		defer c.mu.Unlock()
		return errVersion
	}
	c.inboxes = c.inboxes.with(s)
	c.mu.Unlock()
	if !c.start(request{command: []string{"SUBSCRIBE", s.channel}, raw: answered, limit: pingLimit}) {
		return errBroke
	}
	return nil
}

// unlisten ends the subscription.
func (c *conn) unlisten(s *subscription) {
	c.mu.Lock()
	c.inboxes = c.inboxes.without(s)
	c.mu.Unlock()
	c.start(request{command: []string{"UNSUBSCRIBE", s.channel}, limit: pingLimit, raw: func(resp.Reply, error) {}})
}

// replies returns how many replies and messages have arrived.
func (c *conn) replies() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heard
}

// confirms reports that a message is the reply to SUBSCRIBE or UNSUBSCRIBE.
func confirms(m resp.Reply) bool {
	return len(m.Items) == 3 && (m.Items[0].Text == "subscribe" || m.Items[0].Text == "unsubscribe")
}

// subscriptions are those of a connection.
type subscriptions []*subscription

func (all subscriptions) with(s *subscription) subscriptions { return append(slices.Clone(all), s) }

func (all subscriptions) without(s *subscription) subscriptions {
	return slices.DeleteFunc(slices.Clone(all), func(x *subscription) bool { return x == s })
}

// message delivers a message.
func (all subscriptions) message(m resp.Reply) {
	if len(m.Items) != 3 || m.Items[0].Text != "message" {
		return
	}
	for _, s := range all {
		if s.channel == m.Items[1].Text {
			s.pass(m.Items[2].Text)
		}
	}
}
