//go:build unix

package mysql_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/store/mysql"
)

// TestFailoverBetweenReadAndWriteGivesNoSecondHolder has a client read the row of
// a lock and stop. Another client gets the lock, and a replica that lacks it takes
// the server's place. Then the first client goes on.
func TestFailoverBetweenReadAndWriteGivesNoSecondHolder(t *testing.T) { onBoth(t, failoverBetween) }

func failoverBetween(t *testing.T, p product) {
	for _, used := range []bool{false, true} {
		t.Run(fmt.Sprintf("row exists %v", used), func(t *testing.T) {
			t.Parallel()
			primary := p.replicating(t, 1)
			proxy := servertest.NewProxy(t, primary)
			stop, read, goOn := false, make(chan bool), make(chan bool)
			var once sync.Once
			client := func(between func()) *redlatch.Client {
				n, err := mysql.Open(primary.Through(proxy.Addr()), &mysql.Options{Name: "test"})
				must(t, err)
				// The failover takes seconds; the locks outlive it.
				c, err := redlatch.New([]redlatch.Node{mysql.Between(n, between)}, &redlatch.Options{Cluster: redlatch.Cluster{MaxTTL: time.Minute}, NodeTimeout: 20 * time.Second, AssumeFresh: true})
				must(t, err)
				t.Cleanup(func() { c.Close() })
				return c
			}
			a := client(func() {
				if stop {
					once.Do(func() {
						close(read)
						<-goOn
					})
				}
			})
			b := client(func() {})
			ctx := context.Background()
			names := []string{"other"}
			if used {
				names = append(names, "job")
			}
			for _, name := range names {
				must(t, a.Do(ctx, name, nil, func(context.Context, *redlatch.Lease) error { return nil }))
			}
			replica, promote := p.follow(t, primary)
			// A replica that is frozen gets what is in its socket's buffer.
			exec(t, replica.DSN(), "STOP SLAVE")
			stop = true
			answer := make(chan error, 1)
			go func() {
				_, err := a.TryLock(ctx, "job", &redlatch.LockOptions{TTL: time.Minute})
				answer <- err
			}()
			<-read
			lease, err := b.TryLock(ctx, "job", &redlatch.LockOptions{TTL: time.Minute, NoKeepAlive: true})
			must(t, err)
			primary.Kill()
			promote()
			proxy.LeadTo(replica.Addr())
			proxy.Cut()
			close(goOn)
			err = <-answer
			if err == nil && lease.Err() == nil {
				exclusion.Never(t, "two clients hold the lock")
			}
			t.Logf("the first client: %v", err)
		})
	}
}
