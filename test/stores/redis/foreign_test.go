//go:build unix

package redis_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
)

// foreignFormats are keys under a lock's name that are none of ours. Redisson's
// lock is a hash, Symfony's a sorted set; the others are types that a name may
// happen to have.
var foreignFormats = map[string]struct {
	set  []string
	kind redlatch.HolderKind
	says string
	way  string // the command that the error suggests for removing a key with no expiry
}{
	"hash":   {[]string{"HSET", "job", "uuid:1", "1"}, redlatch.KindForeign, "a foreign format (a key of type hash)", "redlatch break --foreign"},
	"set":    {[]string{"SADD", "job", "a"}, redlatch.KindForeign, "a foreign format (a key of type set)", "redlatch break --foreign"},
	"list":   {[]string{"RPUSH", "job", "a"}, redlatch.KindForeign, "a foreign format (a key of type list)", "redlatch break --foreign"},
	"zset":   {[]string{"ZADD", "job", "1", "__write__"}, redlatch.KindForeign, "a foreign format (a key of type zset)", "redlatch break --foreign"},
	"stream": {[]string{"XADD", "job", "*", "a", "b"}, redlatch.KindForeign, "a foreign format (a key of type stream)", "redlatch break --foreign"},
	"string": {[]string{"SET", "job", "20-random-bytes"}, redlatch.KindPlain, `another client ("20-random-bytes")`, "redlatch break"},
	"empty":  {[]string{"SET", "job", ""}, redlatch.KindPlain, `another client ("")`, "redlatch break"},
}

// TestForeignFormatsAreHeldLocks: the error is "held", with the type of the key and
// the time left. If the key has no expiry the error says so, and what to do. A wait for
// the lock ends with the same error, and with the lock when the key goes. A client of
// another format that takes the key of a lease ends it like any other loss. The foreign
// key is not touched.
func TestForeignFormatsAreHeldLocks(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 3)
	c := newClient(t, open(t, servertest.Addresses(servers)...), redlatch.Options{})
	each := func(command ...string) {
		for _, s := range servers {
			s.Do(command...)
		}
	}
	for name, f := range foreignFormats {
		for _, expires := range []bool{false, true} {
			each("DEL", "job")
			each(f.set...)
			if expires {
				each("PEXPIRE", "job", "60000")
			}
			before := servers[0].Do("DUMP", "job")
			_, tried := c.TryLock(t.Context(), "job", nil)
			_, waited := c.Lock(t.Context(), "job", &redlatch.LockOptions{Wait: 100 * time.Millisecond})
			for _, err := range []error{tried, waited} {
				var held *redlatch.HeldError
				if !errors.As(err, &held) || len(held.Holders) != 1 {
					t.Fatalf("%s: got %v, want a HeldError with one holder", name, err)
				}
				h := held.Holders[0]
				if h.Kind != f.kind || h.Nodes < 2 {
					t.Errorf("%s: the holder is %+v, want kind %s on a quorum", name, h, f.kind)
				}
				wantText(t, err, `"job" is held by `+f.says)
				endless := strings.Contains(err.Error(), "with no expiry: ") && strings.HasSuffix(err.Error(), " "+f.way)
				switch {
				case !expires && (h.Left != node.NoExpiry || !endless):
					t.Errorf("%v (%v left): want that it has no expiry, and %q", err, h.Left, f.way)
				case expires && (h.Left <= 50*time.Second || h.Left > time.Minute || strings.Contains(err.Error(), "expiry")):
					t.Errorf("%v (%v left): want about a minute", err, h.Left)
				}
			}
			if servers[0].Do("DUMP", "job") != before {
				t.Errorf("%s: the key was touched", name)
			}
			waiting := goLock(c, "job", redlatch.LockOptions{})
			eventually(t, patience, inLine(servers, "job", 1))
			if expires {
				each("PEXPIRE", "job", "50")
			} else {
				each("DEL", "job")
			}
			mustRelease(t, mustGet(t, waiting, patience))
			lease := hold(t, c, servers...)
			each("DEL", "job")
			each(f.set...)
			wantErr(t, lease.Extend(t.Context()), redlatch.ErrLost)
			wantErr(t, context.Cause(lease.Context()), redlatch.ErrLost)
			wantErr(t, lease.Release(t.Context()), redlatch.ErrLost)
		}
	}
	c.Close() // the clean-up in the background is done then
	for _, s := range servers {
		if s.Do("EXISTS", "job") != "1" {
			t.Error("the other's key was deleted")
		}
	}
}
