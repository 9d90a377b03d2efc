//go:build unix

package redis_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
)

// TestSideKeysOfALineExpire checks the keys that waiting writes. A queue is renewed every
// 20 s at least, and so must outlive that.
func TestSideKeysOfALineExpire(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t, 1)[0]
	n := open(t, server.URL())[0]
	defer n.Close()
	for ticket, value := range []string{"holder", "head", "next"} {
		req := node.Request{Op: node.OpAcquire, Name: "job", Value: value, TTL: time.Minute, Waiting: node.Waiting{Wait: true, Ticket: int64(ticket + 1)}}
		if _, err := n.Do(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := n.Do(t.Context(), node.Request{Op: node.OpRelease, Name: "job", Value: "holder"}); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{queueOf("job"), strings.Replace(queueOf("job"), "queue", "turn", 1)} {
		if ttl, _ := strconv.Atoi(server.Do("PTTL", key)); ttl < 60_000 || ttl > 90_000 {
			t.Errorf("%s has a time to live of %d ms, want 60 to 90 s", key, ttl)
		}
	}
}
