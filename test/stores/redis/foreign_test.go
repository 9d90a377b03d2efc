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

// withForeign has servers hold the key, for a minute or for ever.
func withForeign(servers []*servertest.Server, set []string, expires bool) {
	for _, s := range servers {
		s.Do(set...)
		if expires {
			s.Do("PEXPIRE", "job", "60000")
		}
	}
}

// TestForeignFormatsAreHeldLocks: the error is "held", with the type of the key
// and the time left. If the key has no expiry the error says so, and what to
// do. A wait for the lock ends with the same error. The key is not changed.
func TestForeignFormatsAreHeldLocks(t *testing.T) {
	t.Parallel()
	for name, f := range foreignFormats {
		for _, expires := range []bool{true, false} {
			t.Run(name+map[bool]string{true: " with expiry", false: " without"}[expires], func(t *testing.T) {
				t.Parallel()
				servers := servertest.Redis(t, 3)
				c := newClient(t, open(t, servertest.Addresses(servers)...), redlatch.Options{})
				withForeign(servers, f.set, expires)
				before := servers[0].Do("DUMP", "job")

				_, tried := c.TryLock(t.Context(), "job", nil)
				_, waited := c.Lock(t.Context(), "job", &redlatch.LockOptions{Wait: 300 * time.Millisecond})
				for _, err := range []error{tried, waited} {
					var held *redlatch.HeldError
					if !errors.As(err, &held) || len(held.Holders) != 1 {
						t.Fatalf("got %v, want a HeldError with one holder", err)
					}
					h := held.Holders[0]
					if h.Kind != f.kind || h.Nodes < 2 {
						t.Errorf("the holder is %+v, want kind %s on a quorum", h, f.kind)
					}
					if !strings.Contains(err.Error(), `"job" is held by `+f.says) {
						t.Errorf("%v: want that it is held by %s", err, f.says)
					}
					endless := strings.Contains(err.Error(), "with no expiry: ") && strings.HasSuffix(err.Error(), " "+f.way)
					switch {
					case !expires && (h.Left != node.NoExpiry || !endless):
						t.Errorf("%v (%v left): want that it has no expiry, and %q", err, h.Left, f.way)
					case expires && (h.Left <= 50*time.Second || h.Left > time.Minute || strings.Contains(err.Error(), "expiry")):
						t.Errorf("%v (%v left): want about a minute", err, h.Left)
					}
				}
				for _, s := range servers {
					if name != "stream" && s.Do("DUMP", "job") != before || s.Do("EXISTS", "job") != "1" {
						t.Error("the key was touched")
					}
				}
			})
		}
	}
}

// TestWaiterHasTheLockWhenAForeignFormatGoes has the foreign key deleted, and
// expire, while a Lock waits.
func TestWaiterHasTheLockWhenAForeignFormatGoes(t *testing.T) {
	t.Parallel()
	for name, f := range foreignFormats {
		for how, end := range map[string]func(s *servertest.Server){
			"deleted":  func(s *servertest.Server) { s.Do("DEL", "job") },
			"runs out": func(s *servertest.Server) { s.Do("PEXPIRE", "job", "50") },
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				servers := servertest.Redis(t, 3)
				c := newClient(t, open(t, servertest.Addresses(servers)...), redlatch.Options{})
				withForeign(servers, f.set, false)
				waiting := goLock(c, "job", redlatch.LockOptions{})
				eventually(t, patience, inLine(servers, "job", 1))
				for _, s := range servers {
					end(s)
				}
				lease := mustGet(t, waiting, patience)
				if lease.Token() == 0 {
					t.Error("the lease has no token")
				}
				mustRelease(t, lease)
			})
		}
	}
}

// TestForeignFormatThatTakesTheKeyOfALeaseEndsIt: a client with another format
// that deleted our key and set its own is a loss like any other. Its key is not
// touched.
func TestForeignFormatThatTakesTheKeyOfALeaseEndsIt(t *testing.T) {
	t.Parallel()
	for name, f := range foreignFormats {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := servertest.Redis(t, 3)
			c := newClient(t, open(t, servertest.Addresses(servers)...), redlatch.Options{})
			lease := hold(t, c, servers...)
			for _, s := range servers {
				s.Do("DEL", "job")
			}
			withForeign(servers, f.set, true)
			wantErr(t, lease.Extend(t.Context()), redlatch.ErrLost)
			wantErr(t, context.Cause(lease.Context()), redlatch.ErrLost)
			wantErr(t, lease.Release(t.Context()), redlatch.ErrLost)
			c.Close() // the clean-up in the background is done then
			for _, s := range servers {
				if s.Do("EXISTS", "job") != "1" {
					t.Error("the other's key was deleted")
				}
			}
		})
	}
}
