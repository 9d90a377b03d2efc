package redislock

import (
	"context"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/examples/migrate/contend"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

func TestRedislockAndRedlatchNeverHoldTogether(t *testing.T) {
	client := goredis.NewClient(&goredis.Options{Addr: servertest.Redis(t, 1)[0].Addr()})
	defer client.Close()
	locks, err := connectAfter(client)
	check.Must(t, err)
	defer locks.Close()
	contend.Run(t, map[string]contend.Side{
		"redislock": func(ctx context.Context, work func(context.Context) error) error {
			return lockBefore(ctx, client, work)
		},
		"redlatch": func(ctx context.Context, work func(context.Context) error) error {
			return lockAfter(ctx, locks, work)
		},
	})
}
