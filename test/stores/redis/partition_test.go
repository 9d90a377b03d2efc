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

// nextHolder waits until another client has the lock, and fails if the previous
// lease was valid at that moment. Both are measured by this process.
func nextHolder(t testing.TB, waiting <-chan got, before *redlatch.Lease) *redlatch.Lease {
	t.Helper()
	next := mustGet(t, waiting, patience)
	if left := before.Remaining(); left > 0 {
		exclusion.Never(t, "two holders: %v are left of the first lease", left)
	}
	wantErr(t, context.Cause(before.Context()), redlatch.ErrLost)
	if next.Token() <= before.Token() {
		exclusion.Never(t, "token %d came after %d", next.Token(), before.Token())
	}
	return next
}

func TestHolderThatIsCutOffIsToldBeforeAnotherHasTheLock(t *testing.T) {
	t.Parallel()
	timedWith(t, "goredis", func(t testing.TB, nodes func(...string) []redlatch.Node) {
		servers := servertest.Redis(t, 3)
		proxies, urls := servertest.NewProxies(t, servers)
		away := newClient(t, nodes(urls...), oneList())
		other := newClient(t, nodes(servertest.Addresses(servers)...), oneList())
		l := holdOnAll(t, away, servers, "job", redlatch.LockOptions{TTL: time.Second})
		waiting := goLock(other, "job", redlatch.LockOptions{})
		for _, p := range proxies {
			p.Partition(true)
		}
		next := nextHolder(t, waiting, l)
		t.Log("the holder is told:", context.Cause(l.Context()))
		_, err := away.TryLock(context.Background(), "job", nil)
		wantErr(t, err, redlatch.ErrNoQuorum)
		if text := err.Error(); !strings.Contains(text, "time limit") {
			t.Errorf("%v does not say that nodes did not answer", err)
		}
		t.Log("who asks is told:", err)
		for _, p := range proxies {
			p.Partition(false)
			p.Cut() // packets in flight are lost when the network is cut
		}
		mustRelease(t, next)
		eventually(t, patience, func() error { return cycle(away) })
		eventually(t, undone, noKeys(servers))
	})
}

func TestServerThatIsCutOffIsDoneWithoutAndRepaired(t *testing.T) {
	t.Parallel()
	timedWith(t, "rueidis", func(t testing.TB, nodes func(...string) []redlatch.Node) {
		servers := servertest.Redis(t, 3)
		proxies, urls := servertest.NewProxies(t, servers)
		holder, other := newClient(t, nodes(urls...), quick), newClient(t, nodes(urls...), quick)
		if err := cycle(other); err != nil { // it has seen that the servers are marked
			t.Fatal(err)
		}
		l := holdOnAll(t, holder, servers, "job", redlatch.LockOptions{TTL: 2 * time.Second})
		proxies[0].Partition(true)
		gone := func() error {
			if servers[0].Do("GET", "job") != "" {
				return errors.New("the server that is cut off still has the lock")
			}
			return nil
		}
		eventually(t, patience, func() error {
			if _, err := other.TryLock(context.Background(), "job", nil); !errors.Is(err, redlatch.ErrHeld) {
				t.Fatalf("with one of three cut off another got %v", err)
			}
			return gone()
		})
		if err := l.Err(); err != nil {
			t.Fatalf("with one of three cut off: %v", err)
		}
		proxies[0].Partition(false)
		proxies[0].Cut()
		eventually(t, patience, func() error {
			if err := l.Err(); err != nil {
				t.Fatalf("with all servers back: %v", err)
			}
			return heldOnAll(servers, l.Name())()
		})
		mustRelease(t, l)
		eventually(t, undone, noKeys(servers))
	})
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
				next := nextHolder(t, waiting, l)
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

// TestMajorityThatDiesEndsTheLeaseAtItsDeadline kills two of three under a
// holder, and brings them back without their data.
func TestMajorityThatDiesEndsTheLeaseAtItsDeadline(t *testing.T) {
	t.Parallel()
	timedWith(t, "direct", func(t testing.TB, nodes func(...string) []redlatch.Node) {
		servers := servertest.Redis(t, 3)
		addresses := servertest.Addresses(servers)
		holder, other := newClient(t, nodes(addresses...), quick), newClient(t, nodes(addresses...), quick)
		l := holdOnAll(t, holder, servers, "job", redlatch.LockOptions{TTL: time.Second})
		for _, s := range servers[:2] {
			s.Kill()
		}
		<-l.Context().Done()
		wantErr(t, context.Cause(l.Context()), redlatch.ErrLost)
		if left := time.Until(l.Deadline()); left > 10*time.Millisecond {
			t.Errorf("it was told %v before the deadline: silence is no loss", left)
		}
		eventually(t, undone, noKeys(servers[2:]))
		_, err := other.TryLock(context.Background(), "job", nil)
		wantErr(t, err, redlatch.ErrNoQuorum)
		wantText(t, err, "refused")
		t.Log("who asks is told:", err)
		for _, s := range servers[:2] {
			s.Restart()
		}
		next := nextHolder(t, goLock(other, "job", redlatch.LockOptions{Wait: 10 * time.Minute}), l)
		mustRelease(t, next)
		eventually(t, undone, noKeys(servers))
	})
}

// TestAllServersThatRestartEmptyLetNobodyInTooEarly leaves no server that
// remembers the lease.
func TestAllServersThatRestartEmptyLetNobodyInTooEarly(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 3)
	addresses := servertest.Addresses(servers)
	first := newClient(t, open(t, addresses...), quick)
	l := hold(t, first, servers...)
	kept := mustLock(t, first, "kept", redlatch.LockOptions{})
	for _, s := range servers {
		s.Kill()
		s.Restart()
	}
	second := laterClient(t, quick, addresses...)
	_, err := second.TryLock(context.Background(), "job", nil)
	wantErr(t, err, redlatch.ErrNoQuorum, redlatch.ErrQuarantine)
	if want := "new, or lost its data"; !strings.Contains(err.Error(), want) {
		t.Errorf("%v does not say %q", err, want)
	}
	t.Log("who asks is told:", err)
	wantNoSecond(t, second, l)
	next, err := second.Lock(context.Background(), "job", &redlatch.LockOptions{Wait: 30 * time.Second})
	must(t, err)
	if next.Token() <= l.Token() {
		exclusion.Never(t, "token %d came after %d, which all servers forgot", next.Token(), l.Token())
	}
	wantErr(t, l.Err(), redlatch.ErrLost)
	<-kept.Context().Done() // by its next extension, or by its deadline
	wantErr(t, context.Cause(kept.Context()), redlatch.ErrLost)
	t.Log("the holder is told:", context.Cause(kept.Context()))
}
