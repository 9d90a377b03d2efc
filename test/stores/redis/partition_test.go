//go:build unix

package redis_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// oneList is for clients that reach the same servers by different addresses. A
// lock that is left behind outlives the test, unless its TTL is set.
func oneList() redlatch.Options {
	return redlatch.Options{Cluster: redlatch.Cluster{Membership: "prod"}, NodeTimeout: time.Second, TTL: 30 * time.Second}
}

// TestPartitionThatLetsOneDirectionThroughLeavesOneHolder delivers the requests
// of a holder and loses the replies, and the other way round.
func TestPartitionThatLetsOneDirectionThroughLeavesOneHolder(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(p *servertest.Proxy, on bool){
		"replies are lost":  (*servertest.Proxy).SwallowReplies,
		"requests are lost": (*servertest.Proxy).LoseRequests,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachDriverTimed(t, func(t testing.TB, nodes func(...string) []redlatch.Node) {
				servers := servertest.Redis(t, 3)
				proxies, urls := servertest.NewProxies(t, servers)
				half := newClient(t, nodes(urls...), oneList())
				other := newClient(t, nodes(servertest.Addresses(servers)...), oneList())
				l := holdOnAll(t, half, servers, "job", redlatch.LockOptions{TTL: time.Second})
				waiting := goLock(other, "job", redlatch.LockOptions{})
				for _, p := range proxies[:2] { // a majority
					lose(p, true)
				}
				next := mustGet(t, waiting, patience)
				if left := l.Remaining(); left > 0 || next.Token() <= l.Token() {
					exclusion.Never(t, "token %d came after %d, whose lease has %v left", next.Token(), l.Token(), left)
				}
				wantErr(t, context.Cause(l.Context()), redlatch.ErrLost)
				mustRelease(t, next)

				// An attempt leaves nothing behind, though it learns of none of
				// its grants.
				_, err := half.TryLock(context.Background(), "other", nil)
				wantErr(t, err, redlatch.ErrNoQuorum)
				if text := err.Error(); !strings.Contains(text, "time limit") {
					t.Errorf("%v does not say that nodes did not answer", err)
				}
				for _, p := range proxies {
					lose(p, false)
					p.Cut()
				}
				eventually(t, undone, noKeys(servers))
				eventually(t, patience, func() error {
					_, err := half.TryLock(context.Background(), "other", nil)
					if errors.Is(err, redlatch.ErrHeld) {
						t.Fatalf("our own lock looks like another's: %v", err)
					}
					return err
				})
			})
		})
	}
}
