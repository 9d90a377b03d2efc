package contender_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/resp"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/test/bench/contender"
	"github.com/redlatch/redlatch/test/bench/server"
)

func startRedis(t *testing.T, n int) *server.Backend {
	t.Helper()
	g, err := server.StartRedis(t.Context(), n)
	check.Must(t, err)
	t.Cleanup(g.Stop)
	check.Must(t, contender.Prepare(t.Context(), server.RedisKind, g.Addresses, false))
	return g
}

func find(t *testing.T, key string) *contender.Contender {
	t.Helper()
	list, err := contender.Find(key)
	check.Must(t, err)
	return list[0]
}

// TestSentCommandsAreThoseThatMonitorShowsFromClients also shows that a script is one
// command: MONITOR tells what scripts run from what clients send.
func TestSentCommandsAreThoseThatMonitorShowsFromClients(t *testing.T) {
	for _, s := range contender.All {
		if s.Server != server.RedisKind || s.Fixed > 1 {
			continue
		}
		t.Run(s.Key, func(t *testing.T) {
			t.Parallel()
			g := startRedis(t, 1)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			target := g.Addresses
			if s.Guarded {
				check.Must(t, contender.Prepare(ctx, s.Server, target, true))
			}
			open := func() *contender.Locker {
				l, err := s.Open(ctx, target)
				check.Must(t, err)
				t.Cleanup(l.Close)
				if s.Key == "rueidislock" {
					l.Lock = asksAgain(l.Lock)
				}
				return l
			}
			a, b := open(), open()
			pair(t, ctx, a, "warm")
			pair(t, ctx, b, "warm")
			// What waiting opens, it opens once.
			contend(t, ctx, a, b, "warm too")
			contend(t, ctx, b, a, "warm too")
			seen := monitor(t, g)
			before, err := g.Sample()
			check.Must(t, err)
			for range 3 {
				pair(t, ctx, a, "mine")
			}
			contend(t, ctx, a, b, "both")
			after, err := g.Sample()
			check.Must(t, err)
			counted, shown := s.Sent(after.Sub(before).Commands), seen()
			if counted != int64(len(shown)) {
				t.Fatalf("counted %d of %v; MONITOR showed %d: %v", counted, after.Sub(before).Commands, len(shown), shown)
			}
			if counted < 6 {
				t.Fatalf("three pairs are no %d commands", counted)
			}
		})
	}
}

// asksAgain waits for a lock in pieces of two seconds. rueidislock loses wakes:
// the goroutine that ends a refused try may run before the try has counted its
// failure; it then takes the try for a success and drops the gate at which the
// waiter waits, for good. How often that happens is the bench's to show; what
// commands it sends is all that is asked here.
func asksAgain(lock func(context.Context, string) (contender.Release, error)) func(context.Context, string) (contender.Release, error) {
	return func(ctx context.Context, name string) (contender.Release, error) {
		for {
			piece, end := context.WithCancel(ctx)
			over := time.AfterFunc(2*time.Second, end)
			release, err := lock(piece, name)
			switch {
			case err == nil && over.Stop():
				return release, nil
			case err == nil: // and ended with its context, a moment ago
				err = release.Do()
			}
			cut := piece.Err() != nil
			end()
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err != nil && !cut {
				return nil, err
			}
		}
	}
}

func pair(t *testing.T, ctx context.Context, l *contender.Locker, name string) {
	t.Helper()
	release, err := l.Lock(ctx, name)
	if err == nil {
		err = release.Do()
	}
	check.Must(t, err)
}

// contend has one wait for what the other holds.
func contend(t *testing.T, ctx context.Context, a, b *contender.Locker, name string) {
	t.Helper()
	release, err := a.Lock(ctx, name)
	check.Must(t, err)
	done := make(chan error, 1)
	go func() {
		got, err := b.Lock(ctx, name)
		if err == nil {
			err = got.Do()
		}
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("a lock that is held was given to another (%v)", err)
	case <-time.After(300 * time.Millisecond):
	}
	check.Must(t, release.Do())
	check.Must(t, <-done)
}

// monitor watches a server; the function it returns says what clients sent
// until then, between the two readings of the statistics.
func monitor(t *testing.T, g *server.Backend) func() []string {
	t.Helper()
	m, err := resp.Dial("tcp", g.Addresses[0])
	check.Must(t, err)
	t.Cleanup(func() { m.Close() })
	if _, err := m.Do("MONITOR"); err != nil {
		t.Fatal(err)
	}
	return func() []string {
		m.SetDeadline(time.Now().Add(10 * time.Second))
		var sent []string
		for samples := 0; ; {
			line, err := m.Receive()
			check.Must(t, err)
			// 1700000000.123456 [0 127.0.0.1:4711] "set" "a" "b", or [0 lua]
			_, line.Text, _ = strings.Cut(line.Text, " [0 ")
			client, command, _ := strings.Cut(line.Text, "] ")
			switch {
			case client == "lua":
			case strings.EqualFold(command, `"info" "all"`):
				if samples++; samples == 2 {
					return sent
				}
			case samples == 1:
				sent = append(sent, command)
			}
		}
	}
}

// TestADatabasesOwnLockHeedsADeadline also shows that its connection survives it.
func TestADatabasesOwnLockHeedsADeadline(t *testing.T) {
	for _, key := range []string{"pg-advisory", "get-lock"} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			c := find(t, key)
			b, err := server.Start(t.Context(), c.Server, 1, server.Network{})
			check.Must(t, err)
			t.Cleanup(b.Stop)
			l, err := c.Open(t.Context(), b.Addresses)
			check.Must(t, err)
			t.Cleanup(l.Close)
			release, err := l.Lock(t.Context(), "job")
			check.Must(t, err)
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if _, err := l.Lock(ctx, "job"); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) < 45*time.Millisecond {
				t.Errorf("a lock that is held: %v after %v", err, time.Since(began))
			}
			check.Must(t, release.Do())
			pair(t, t.Context(), l, "job")
		})
	}
}
