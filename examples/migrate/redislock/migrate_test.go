package redislock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/bsm/redislock"
	goredis "github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/examples/migrate/contend"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

func connect(t *testing.T) (*goredis.Client, *redlatch.Client) {
	t.Helper()
	client := goredis.NewClient(&goredis.Options{Addr: servertest.Redis(t, 1)[0].Addr()})
	t.Cleanup(func() { client.Close() })
	locks, err := connectAfter(client)
	check.Must(t, err)
	t.Cleanup(func() { locks.Close() })
	return client, locks
}

func TestRedislockAndRedlatchNeverHoldTogether(t *testing.T) {
	client, locks := connect(t)
	err := contend.Run(t.Context(), map[string]contend.Side{
		"redislock": func(ctx context.Context, work func(context.Context) error) error {
			return lockBefore(ctx, client, work)
		},
		"redlatch": func(ctx context.Context, work func(context.Context) error) error {
			return lockAfter(ctx, locks, work)
		},
	}, 10, time.Minute)
	if err != nil {
		t.Error(err)
	}
}

func TestEachTellsThatTheOtherHolds(t *testing.T) {
	client, locks := connect(t)
	lock, err := redislock.Obtain(t.Context(), client, "orders/42", time.Minute, &redislock.Options{Token: "t", Metadata: "billing"})
	check.Must(t, err)
	_, err = locks.TryLock(t.Context(), "orders/42", nil)
	var held *redlatch.HeldError
	if !errors.As(err, &held) || held.Holders[0].Kind != redlatch.KindPlain || held.Holders[0].Owner != `"tbilling"` {
		t.Errorf("redlatch sees redislock's lock as %+v", err)
	}
	check.Must(t, lock.Release(t.Context()))
	if _, err := locks.TryLock(t.Context(), "orders/42", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := redislock.Obtain(t.Context(), client, "orders/42", time.Minute, nil); !errors.Is(err, redislock.ErrNotObtained) {
		t.Errorf("redislock sees redlatch's lock as %v", err)
	}
}
