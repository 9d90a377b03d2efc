package rueidis

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"
)

// pingEvery is how often a connection that only listens is tested, and
// pingLimit how long the answer may take.
const (
	pingEvery = 2 * time.Second
	pingLimit = time.Second
)

// Subscribe listens on a connection of its own. On the connection of the
// requests, the library would have to hand every reply from goroutine to
// goroutine.
func (d *driver) Subscribe(ctx context.Context, channel string, up func(), message func(text string)) error {
	client, err := d.get(ctx)
	if err != nil {
		return err
	}
	conn, _ := client.Dedicate()
	defer conn.Close()
	broken := conn.SetPubSubHooks(rueidis.PubSubHooks{
		OnSubscription: func(s rueidis.PubSubSubscription) {
			if s.Kind == "subscribe" && s.Channel == channel {
				up()
			}
		},
		OnMessage: func(m rueidis.PubSubMessage) {
			if m.Channel == channel {
				message(m.Message)
			}
		},
	})
	if err := do(ctx, conn, conn.B().Subscribe().Channel(channel).Build()); err != nil {
		return err
	}
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-broken:
			return fmt.Errorf("listening to %s: %w", channel, wrap(err))
		case <-ticker.C:
			if err := do(ctx, conn, conn.B().Ping().Build()); err != nil {
				return err
			}
		}
	}
}

func do(ctx context.Context, conn rueidis.DedicatedClient, cmd rueidis.Completed) error {
	ctx, cancel := context.WithTimeout(ctx, pingLimit)
	defer cancel()
	return wrap(conn.Do(ctx, cmd).Error())
}
