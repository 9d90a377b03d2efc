//go:build unix

package redlatchgoose_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite"

	"github.com/redlatch/redlatch"
	redlatchgoose "github.com/redlatch/redlatch/adapters/goose"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/processes"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

const patience = 30 * time.Second

var must = check.Must

// copies are copies of a program that migrates a database.
type copies struct {
	t       testing.TB
	file    string
	servers []*servertest.Server
}

func newCopies(t testing.TB) copies {
	t.Helper()
	servers, _ := processes.Servers(t, 3)
	return copies{t, filepath.Join(t.TempDir(), "shop.db"), servers}
}

func (c copies) client() *redlatch.Client { return processes.Client(c.t, c.servers) }

// provider returns the provider of one copy, with a migration in SQL and one in
// Go.
func (c copies) provider(step func(ctx context.Context) error, opts ...goose.ProviderOption) *goose.Provider {
	c.t.Helper()
	db, err := sql.Open("sqlite", "file:"+c.file+"?_pragma=busy_timeout(10000)")
	must(c.t, err)
	c.t.Cleanup(func() { db.Close() })
	run := func(ctx context.Context, db *sql.DB) error {
		if err := step(ctx); err != nil {
			return err
		}
		_, err := db.ExecContext(ctx, "INSERT INTO orders VALUES ('first')")
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, migrations, append(opts,
		goose.WithGoMigrations(goose.NewGoMigration(2, &goose.GoFunc{RunDB: run}, nil)))...)
	must(c.t, err)
	return p
}

func (c copies) locker(locks *redlatch.Client, ttl time.Duration) goose.ProviderOption {
	c.t.Helper()
	l, err := redlatchgoose.New(locks, "migrate/shop", &redlatch.LockOptions{TTL: ttl})
	must(c.t, err)
	return goose.WithLocker(l)
}

func TestOneCopyOfFourMigrates(t *testing.T) {
	t.Parallel()
	c := newCopies(t)
	var runs, inside atomic.Int32
	step := func(context.Context) error {
		runs.Add(1)
		if inside.Add(1) > 1 {
			t.Error("two migrate at the same time")
		}
		time.Sleep(200 * time.Millisecond) // in which another could come
		inside.Add(-1)
		return nil
	}
	var all sync.WaitGroup
	for range 4 {
		p := c.provider(step, c.locker(c.client(), 5*time.Second))
		all.Go(func() {
			if _, err := p.Up(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := runs.Load(); n != 1 {
		t.Errorf("the migration ran %d times", n)
	}
}

// TestLossOfTheLockEndsTheMigration freezes all servers while a copy migrates.
func TestLossOfTheLockEndsTheMigration(t *testing.T) {
	t.Parallel()
	c := newCopies(t)
	began := make(chan struct{})
	var cause error
	p := c.provider(func(ctx context.Context) error {
		close(began)
		select {
		case <-ctx.Done():
			cause = context.Cause(ctx)
			return ctx.Err()
		case <-time.After(patience):
			return errors.New("the migration goes on without its lock")
		}
	}, c.locker(c.client(), 2*time.Second))
	ended := make(chan error, 1)
	go func() {
		ctx, stop := redlatchgoose.Context(t.Context())
		defer stop()
		_, err := p.Up(ctx)
		ended <- err
	}()
	select {
	case <-began:
	case err := <-ended:
		t.Fatalf("it ended before the migration began: %v", err)
	}
	for _, s := range c.servers {
		s.Freeze()
		t.Cleanup(s.Thaw)
	}
	if err := <-ended; !errors.Is(err, redlatch.ErrLost) || !errors.Is(cause, redlatch.ErrLost) {
		t.Errorf("the migration ended with %v, because of %v; want ErrLost", err, cause)
	}
}

// TestCallAfterCallMigrates uses one locker several times, as goose does.
func TestCallAfterCallMigrates(t *testing.T) {
	t.Parallel()
	c := newCopies(t)
	locks := c.client()
	p := c.provider(func(context.Context) error { return nil }, c.locker(locks, 5*time.Second))
	ctx, stop := redlatchgoose.Context(t.Context())
	defer stop()
	for range 2 {
		if _, err := p.Up(ctx); err != nil {
			t.Fatalf("up: %v", err)
		}
		if _, err := p.DownTo(ctx, 1); err != nil {
			t.Fatalf("down: %v", err)
		}
	}
	poll.Until(t, "the lock is free", func() bool {
		lease, err := locks.TryLock(t.Context(), "migrate/shop", nil)
		if err == nil {
			lease.Release(t.Context())
		}
		return err == nil
	})
}

func TestBadArgumentsAreNamed(t *testing.T) {
	t.Parallel()
	locks := newCopies(t).client()
	for says, err := range map[string]error{
		"locks":  second(redlatchgoose.New(nil, "migrate", nil)),
		"name":   second(redlatchgoose.New(locks, "", nil)),
		"Shared": second(redlatchgoose.New(locks, "migrate", &redlatch.LockOptions{Shared: true})),
	} {
		if !errors.Is(err, redlatch.ErrConfig) || !strings.Contains(err.Error(), says) {
			t.Errorf("the error is %v, want one that names %q", err, says)
		}
	}
}

func second[T any](_ T, err error) error { return err }
