//go:build unix

package redis_test

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// TestSideKeysOfALineExpireAndGoWithIt checks the keys that waiting writes.
func TestSideKeysOfALineExpireAndGoWithIt(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 3)
	holder := newClient(t, open(t, servertest.Addresses(servers)...), redlatch.Options{})
	lease := holdOnAll(t, holder, servers, "job", redlatch.LockOptions{})
	ctx, giveUp := context.WithCancel(context.Background())
	var waiting []<-chan got
	for i := range 3 {
		waiter := newClient(t, open(t, servertest.Addresses(servers)...), redlatch.Options{})
		waiting = append(waiting, goLock(waiter, "job", redlatch.LockOptions{}))
		eventually(t, patience, inLine(servers, "job", i+1))
	}
	quitter := newClient(t, open(t, servertest.Addresses(servers)...), redlatch.Options{})
	quit := make(chan error, 1)
	go func() { _, err := quitter.Lock(ctx, "job", nil); quit <- err }()
	eventually(t, patience, inLine(servers, "job", 4))
	for _, s := range servers {
		for _, key := range []string{queueOf("job"), strings.Replace(queueOf("job"), "queue", "turn", 1)} {
			// A queue is renewed every 20 s at least, and so must outlive that.
			if ttl, _ := strconv.Atoi(s.Do("PTTL", key)); ttl < 60_000 || ttl > 90_000 {
				t.Errorf("%s has a time to live of %d ms, want 60 to 90 s", key, ttl)
			}
		}
	}
	// A waiter that gives up has left every queue when Lock returns, or right
	// after.
	giveUp()
	wantErr(t, <-quit, context.Canceled)
	eventually(t, patience, inLine(servers, "job", 3))
	handOver(t, lease, waiting, nil)
	eventually(t, undone, nothingLeft(servers, "job"))
}
