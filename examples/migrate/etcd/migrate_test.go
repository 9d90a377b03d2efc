package etcd

import (
	"context"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/examples/migrate/contend"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/store/redis/rueidis"
)

type work = func(context.Context) error

// start returns a client of an etcd server of the test's own.
func start(t *testing.T) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{servertest.OwnEtcd(t).Addr()}, DialTimeout: time.Minute})
	check.Must(t, err)
	t.Cleanup(func() { client.Close() })
	return client
}

func newLocks(t *testing.T) *redlatch.Client {
	t.Helper()
	n, err := rueidis.Open(servertest.Redis(t, 1)[0].URL(), nil)
	check.Must(t, err)
	locks, err := redlatch.New([]redlatch.Node{n}, nil)
	check.Must(t, err)
	t.Cleanup(func() { locks.Close() })
	return locks
}

func TestWithBothHeldEitherMayBeLeftOut(t *testing.T) {
	t.Parallel()
	client, locks := start(t), newLocks(t)
	before := func(ctx context.Context, w work) error {
		return lockBefore(ctx, client, func(ctx context.Context, _ int64) error { return w(ctx) })
	}
	nested := func(ctx context.Context, w work) error {
		session, err := concurrency.NewSession(client, concurrency.WithTTL(8))
		if err != nil {
			return err
		}
		defer session.Close()
		return both(ctx, session, locks, func(ctx context.Context, _ int64, _ redlatch.Token) error { return w(ctx) })
	}
	after := func(ctx context.Context, w work) error {
		return lockAfter(ctx, locks, func(ctx context.Context, _ redlatch.Token) error { return w(ctx) })
	}
	contend.Run(t, map[string]contend.Side{"etcd": before, "both": nested})
	contend.Run(t, map[string]contend.Side{"both": nested, "redlatch": after})
}

// TestTokensGrowFromEtcdToRedlatch is why a resource that has seen revisions
// takes tokens, once nobody comes with a revision any more.
func TestTokensGrowFromEtcdToRedlatch(t *testing.T) {
	t.Parallel()
	client, locks := start(t), newLocks(t)
	var revision int64
	check.Must(t, lockBefore(t.Context(), client, func(_ context.Context, token int64) error {
		revision = token
		return nil
	}))
	err := lockAfter(t.Context(), locks, func(_ context.Context, token redlatch.Token) error {
		// A thousand writes a second for ten thousand years.
		const ever = 1000 * 86400 * 365 * 10000
		if revision <= 0 || int64(token) <= revision || token < ever {
			t.Errorf("token %d after revision %d", token, revision)
		}
		return nil
	})
	check.Must(t, err)
}

func TestOneLeadsAtATime(t *testing.T) {
	t.Parallel()
	client, locks := start(t), newLocks(t)
	session, err := concurrency.NewSession(client)
	check.Must(t, err)
	defer session.Close()
	led := 0
	for range 2 {
		check.Must(t, leadBefore(t.Context(), session, func(context.Context, int64) error { led++; return nil }))
		check.Must(t, leadAfter(t.Context(), locks, func(context.Context, redlatch.Token) error { led++; return nil }))
	}
	if led != 4 {
		t.Errorf("led %d times of 4", led)
	}
}
