//go:build unix

package redis_test

import (
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/redis"
)

// TestCommonRequestsAreAnsweredWithANumber has the lock taken, extended and
// released where nobody else wants it. The first grant shows which server it is;
// from then on each reply is a number, and means the same. It stays so until the
// server may have forgotten something.
func TestCommonRequestsAreAnsweredWithANumber(t *testing.T) {
	for kind := range subscribers {
		for _, guard := range []*node.Guard{
			nil,
			{Membership: "8fd65869eaf57c00", MaxTTL: time.Minute, Window: time.Minute, Quarantine: time.Minute, Off: true},
			{Membership: "8fd65869eaf57c00", MaxTTL: time.Minute, Window: time.Minute, Quarantine: time.Minute},
		} {
			name := map[bool]string{true: kind + ", unguarded", false: kind + ", guarded"}[guard == nil]
			if guard != nil && guard.Off {
				name = kind + ", guard off"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := servertest.Redis(t, 1, servertest.WithDebug(t)...)[0]
				d := newTap(t, kind, s)
				n := redis.New(d, s.URL())
				guarded := guard != nil && !guard.Off
				if guarded {
					if r, err := n.Mark(t.Context(), node.MarkRequest{Mark: node.MarkFresh, Guard: guard}); err != nil || r.Status != node.Granted {
						t.Fatal(r, err)
					}
				}
				req := node.Request{Name: "job", TTL: time.Minute, Fencing: node.Fencing{Retention: time.Hour, Window: time.Minute}, Guard: guard}
				do := func(op node.Op, value string) node.Reply {
					t.Helper()
					req.Op, req.Value = op, value
					r, err := n.Do(t.Context(), req)
					if err != nil {
						t.Fatal(op, err)
					}
					return r
				}
				now := do(node.OpInspect, "").Now
				server := ""
				for pair, value := range []string{"a", "b", "c"} {
					req.Token = node.Token(now.UnixMicro()) + node.Token(pair)
					before := d.numbers.Load()
					got, extended, released := do(node.OpAcquire, value), do(node.OpExtend, value), do(node.OpRelease, value)
					if pair == 0 {
						server = got.Server
					} else if n := d.numbers.Load() - before; n != 3 {
						t.Errorf("pair %d: %d numbers for three requests", pair, n)
					}
					if got.Server != server || (server != "") != guarded {
						t.Errorf("pair %d: granted by server %q, want %q", pair, got.Server, server)
					}
					if !released.Now.IsZero() || got.Now.IsZero() || extended.Now.IsZero() {
						t.Errorf("pair %d: the clock was %v, %v and %v; a release does not read it", pair, got.Now, extended.Now, released.Now)
					}
					for _, r := range []node.Reply{got, extended, released} {
						inTime := !r.Now.Before(now) && !r.Now.After(now.Add(time.Minute))
						if r.Status != node.Granted || r.Fence != req.Token || !inTime && !r.Now.IsZero() {
							t.Errorf("pair %d: %+v", pair, r)
						}
					}
				}
				req.Token += 10
				do(node.OpAcquire, "d")
				if r := do(node.OpAcquire, "e"); r.Status != node.Held || r.Value != "d" {
					t.Errorf("the lock is held by d: %+v", r)
				}
				if !guarded {
					return
				}
				reserve := func(want bool) {
					t.Helper()
					req.Token, req.Reserve = req.Token+10, 3
					if r := do(node.OpExtend, "d"); r.Status != node.Granted || r.Confirmed != want {
						t.Errorf("tokens are reserved: %v, want %v: %+v", r.Confirmed, want, r)
					}
					req.Reserve = 0
				}
				reserve(true)
				other, marks := *guard, redis.New(newTap(t, kind, s), s.URL())
				other.Membership = "0123456789abcdef"
				for _, g := range []*node.Guard{&other, guard} {
					if r, err := marks.Mark(t.Context(), node.MarkRequest{Mark: node.MarkReplace, Guard: g}); err != nil || r.Status != node.Quarantined {
						t.Fatal(r, err)
					}
				}
				reserve(false)                  // in quarantine
				s.Do("DEBUG", "CHANGE-REPL-ID") // as by a promotion
				if r := do(node.OpExtend, "d"); r.Status != node.Granted || !r.NeedsMark {
					t.Errorf("an extension does not ask for a mark: %+v", r)
				}
				do(node.OpRelease, "d")
				req.Token++
				if r := do(node.OpAcquire, "f"); r.Status != node.Quarantined {
					t.Errorf("a server with another replication id grants: %+v", r)
				}
			})
		}
	}
}
