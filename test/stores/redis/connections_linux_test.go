package redis_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// connectionsTo counts this process's open connections to an address.
func connectionsTo(t testing.TB, address string) (n int) {
	t.Helper()
	_, text, err := net.SplitHostPort(address)
	must(t, err)
	port, err := strconv.Atoi(text)
	must(t, err)
	table, err := os.ReadFile("/proc/self/net/tcp")
	must(t, err)
	for line := range strings.Lines(string(table)) {
		// number, local address, remote address, state: established, or closed
		// by the other end alone.
		f := strings.Fields(line)
		if len(f) > 3 && strings.HasSuffix(f[2], fmt.Sprintf(":%04X", port)) && (f[3] == "01" || f[3] == "08") {
			n++
		}
	}
	return n
}

// TestConnectionsAfterTroubleAreNoMoreThanBefore has connections go silent, lose
// their replies and break, round after round, under many callers. At rest there
// are no more connections than a driver may have, and none after Close.
func TestConnectionsAfterTroubleAreNoMoreThanBefore(t *testing.T) {
	t.Parallel()
	// go-redis has 16 connections for requests, 4 for extensions and one that
	// listens; the others have fewer.
	const most = 16 + 4 + 1
	eachDriver(t, func(t *testing.T, nodes func(...string) []redlatch.Node) {
		t.Parallel()
		proxies, urls := servertest.NewProxies(t, servertest.Redis(t, 3))
		atMost := func(n int) func() error {
			return func() error {
				for _, p := range proxies {
					if open := connectionsTo(t, p.Addr()); open > n {
						return fmt.Errorf("%d connections are open, want %d at most", open, n)
					}
				}
				return nil
			}
		}
		c, err := redlatch.New(nodes(urls...), &redlatch.Options{Guard: redlatch.GuardOff, NodeTimeout: 100 * time.Millisecond})
		must(t, err)
		for round := range 8 {
			var all sync.WaitGroup
			for i := range 48 {
				all.Go(func() {
					ctx, cancel := context.WithTimeout(context.Background(), 400*time.Millisecond)
					defer cancel()
					if l, err := c.Lock(ctx, fmt.Sprint("name ", i), &redlatch.LockOptions{TTL: 2 * time.Second}); err == nil {
						l.Release(ctx)
					}
				})
			}
			for i, p := range proxies {
				switch (round + i) % 4 {
				case 0:
					p.Forget()
				case 1:
					p.SwallowReplies(true)
				case 2:
					p.Reset()
				}
			}
			all.Wait()
			for _, p := range proxies {
				p.SwallowReplies(false)
			}
		}
		eventually(t, patience, atMost(most))
		c.Close()
		eventually(t, patience, atMost(0))
	})
}
