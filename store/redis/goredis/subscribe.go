package goredis

import (
	"context"
	"errors"
	"net"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/store/redis/internal/conns"
)

// pingEvery is how often a connection that only listens is tested, and
// pingLimit how long the answer may take.
const (
	pingEvery = 2 * time.Second
	pingLimit = time.Second
)

// Subscribe listens on a connection of its own.
func (d *driver) Subscribe(ctx context.Context, channel string, up func(), message func(text string)) error {
	conn := d.ask.client.Subscribe(ctx)
	defer conn.Close()
	// Receive does not return when ctx ends, but when the connection is closed.
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := conn.Subscribe(ctx, channel); err != nil {
		return wrap(err)
	}
	for silent := false; ; {
		limit := pingEvery
		if silent {
			limit = pingLimit
		}
		got, err := conn.ReceiveTimeout(ctx, limit)
		var timeout net.Error
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			silent = false
		case silent || errors.Is(err, conns.ErrSilent) || !errors.As(err, &timeout) || !timeout.Timeout():
			return wrap(err)
		default:
			silent = true
			if err := conn.Ping(ctx); err != nil {
				return wrap(err)
			}
			continue
		}
		switch m := got.(type) {
		case *goredis.Subscription:
			if m.Kind == "subscribe" && m.Channel == channel {
				up()
			}
		case *goredis.Message:
			message(m.Payload)
		}
	}
}
