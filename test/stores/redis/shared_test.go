//go:build unix

package redis_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/nodestate"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
)

// Clients that know no groups are kept out by one, and can never take it for
// their own.

var (
	aReader = node.Share{Mode: node.Shared}
	aSlot   = node.Share{Mode: node.Slotted, Slots: 2}
)

// asker sends requests about one name to a real server.
type asker struct {
	testing.TB
	n redlatch.Node
}

func newAsker(t testing.TB, server *servertest.Server) asker {
	n := open(t, server.URL())[0]
	t.Cleanup(func() { n.Close() })
	return asker{t, n}
}

func (a asker) do(op node.Op, value string, share node.Share, ttl time.Duration) node.Reply {
	a.Helper()
	reply, err := a.n.Do(context.Background(), node.Request{Op: op, Name: "job", Value: value, Share: share, TTL: ttl,
		Fencing: node.Fencing{Token: node.Token(time.Now().UnixMicro()), Window: time.Minute, Retention: time.Hour}})
	must(a, err)
	return reply
}

func (a asker) expect(want node.Status, op node.Op, value string, share node.Share) node.Reply {
	a.Helper()
	reply := a.do(op, value, share, 10*time.Minute)
	if reply.Status != want {
		a.Fatalf("%v of %v by %q: %v, want %v", op, share, value, reply.Status, want)
	}
	return reply
}

// unlock is how Redlock clients free a lock.
const unlock = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`

// TestPlainClientsAndWeExcludeEachOther has all, readers and slots of a name held. A DEL
// frees it from all at once.
func TestPlainClientsAndWeExcludeEachOther(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t, 1)[0]
	a := newAsker(t, server)
	for _, share := range []node.Share{{}, aReader, aSlot} {
		t.Run(share.Text(), func(t *testing.T) {
			values, others := []string{"one", "two"}, []string{"one", "two", "plain"}
			if share == (node.Share{}) {
				values, others = values[:1], others[1:]
			}
			take := func() {
				for _, value := range values {
					a.expect(node.Granted, node.OpAcquire, value, share)
				}
			}
			take()
			if got := server.Do("SET", "job", "plain", "NX", "PX", "60000"); got != "" {
				exclusion.Never(t, "a plain client got the lock: %s", got)
			}
			for _, value := range others {
				if got := server.Do("EVAL", unlock, "1", "job", value); got != "0" {
					t.Errorf("a plain release of %s freed the lock", value)
				}
			}
			if r := a.expect(node.Held, node.OpInspect, "", node.Share{}); r.Holders != len(values) || r.Value != "one" {
				t.Fatalf("it is held by %d, the first is %q", r.Holders, r.Value)
			}
			for i, value := range values {
				slot := share
				if share.Mode == node.Slotted {
					slot.Slot = uint8(i)
				}
				a.expect(node.Granted, node.OpExtend, value, slot)
				a.expect(node.Granted, node.OpRelease, value, slot)
			}
			if got := server.Do("SET", "job", "plain", "NX", "PX", "60000"); got != "OK" {
				t.Fatalf("the lock is free, and a plain client did not get it: %q", got)
			}
			r := a.expect(node.Held, node.OpAcquire, "one", share)
			if r.Value != "plain" || r.Holders != 1 || r.Share != (node.Share{}) || r.Free != 0 || r.Left <= 50*time.Second {
				t.Errorf("it is held as %+v", r)
			}
			if got := server.Do("EVAL", unlock, "1", "job", "plain"); got != "1" {
				t.Error("the plain client could not free its lock")
			}
			take()
			server.Do("DEL", "job")
			for _, value := range values {
				a.expect(node.Absent, node.OpExtend, value, share)
			}
			a.expect(node.Granted, node.OpAcquire, "writer", node.Share{})
			a.expect(node.Granted, node.OpRelease, "writer", node.Share{})
		})
	}
}

func TestKeyOfAGroupLivesAsLongAsItsLastHolder(t *testing.T) {
	t.Parallel()
	timed(t, func(t testing.TB) {
		server := servertest.Redis(t, 1)[0]
		a := newAsker(t, server)
		left := func() time.Duration {
			ms, err := strconv.Atoi(server.Do("PTTL", "job"))
			must(t, err)
			return time.Duration(ms) * time.Millisecond
		}
		expect := func(want time.Duration) {
			t.Helper()
			if got := left(); got > want+time.Millisecond || got < want-5*time.Second {
				t.Errorf("the key lives for %v, want %v", got, want)
			}
		}
		a.do(node.OpAcquire, "one", aReader, 40*time.Second)
		expect(40 * time.Second)
		a.do(node.OpAcquire, "two", aReader, 20*time.Second)
		expect(40 * time.Second)
		a.do(node.OpExtend, "two", aReader, 60*time.Second)
		expect(60 * time.Second)
		a.do(node.OpRelease, "two", aReader, 0)
		expect(40 * time.Second)
		a.do(node.OpExtend, "one", aReader, 10*time.Second)
		expect(10 * time.Second)
		a.do(node.OpAcquire, "three", aReader, 100*time.Millisecond)
		a.do(node.OpRelease, "one", aReader, 0)
		expect(100 * time.Millisecond)
		eventually(t, patience, func() error {
			if server.Do("EXISTS", "job") != "0" {
				return fmt.Errorf("the key is left, for %v", left())
			}
			return nil
		})
		a.expect(node.Granted, node.OpAcquire, "writer", node.Share{})
	})
}

// TestGroupThatHasExpiredIsFree has a key that outlives its holders, as it may
// by a fraction of a millisecond.
func TestGroupThatHasExpiredIsFree(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t, 1)[0]
	a := newAsker(t, server)
	group := func(kind string) {
		server.Do("SET", "job", "redlatch-group-2 "+kind+" id", "PX", "60000")
		server.Do("DEL", "redlatch:1:group:{job}")
		server.Do("ZADD", "redlatch:1:group:{job}", "0", "iid", "1000000000000000", "u00one", "-9007199254740985", "tone")
	}
	for _, share := range []node.Share{{}, aReader, aSlot} {
		for _, kind := range []string{"r", "s02"} {
			for op, want := range map[node.Op]node.Status{
				node.OpInspect: node.Absent, node.OpExtend: node.Absent, node.OpRelease: node.Absent, node.OpYield: node.Absent,
				node.OpAcquire: node.Granted, node.OpRepair: node.Granted, node.OpBreak: node.Granted,
			} {
				group(kind)
				a.expect(want, op, "one", share)
			}
		}
	}
}

// TestGroupThatCannotBeReadIsHeld has a key of a version that is not known, and one that
// is no string.
func TestGroupThatCannotBeReadIsHeld(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t, 1)[0]
	a := newAsker(t, server)
	unreadable := func(want node.Status, value string, set ...string) {
		t.Helper()
		server.Do("DEL", "job")
		server.Do(set...)
		before := server.Do("DUMP", "job")
		for _, share := range []node.Share{{}, aReader, aSlot} {
			for _, op := range []node.Op{node.OpInspect, node.OpExtend, node.OpRelease, node.OpYield, node.OpAcquire, node.OpRepair} {
				if r := a.expect(want, op, "one", share); want == node.Held && r.Value != value || want == node.Foreign && r.Format != value || want == node.Held && r.Holders != 1 || r.Left != node.NoExpiry {
					t.Errorf("%v: it is held as %+v", op, r)
				}
			}
		}
		if server.Do("DUMP", "job") != before {
			t.Errorf("%q was touched", set)
		}
	}
	for _, text := range []string{"redlatch-group-3 r id", "redlatch-group-2 one", "redlatch-group-2 r leftover", "redlatch-group-1 1000000000000000"} {
		unreadable(node.Held, text, "SET", "job", text)
	}
	unreadable(node.Foreign, "hash", "HSET", "job", "id", "1")
}

// TestDocumentedUserMayShare sends each request for a share with the rights of
// the documentation.
func TestDocumentedUserMayShare(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t, 1)[0]
	server.Do(documentedUser(t)...)
	n := open(t, asUser(server, "locks:PASSWORD"))[0]
	t.Cleanup(func() { n.Close() })
	for _, share := range []node.Share{aReader, aSlot} {
		for _, step := range []struct {
			op    node.Op
			value string
			share node.Share
			want  node.Status
		}{
			{node.OpAcquire, "one", share, node.Granted}, {node.OpExtend, "one", share, node.Granted},
			{node.OpAcquire, "writer", node.Share{}, node.Held}, {node.OpYield, "one", share, node.Reserved},
			{node.OpRelease, "writer", node.Share{}, node.Absent}, {node.OpRepair, "one", share, node.Granted},
			{node.OpRelease, "one", share, node.Granted},
		} {
			ticket := int64(2)
			if step.value == "writer" {
				ticket = 1
			}
			r, err := n.Do(context.Background(), node.Request{Op: step.op, Name: "orders/1", Value: step.value, Share: step.share, TTL: time.Minute,
				Fencing: node.Fencing{Token: node.Token(time.Now().UnixMicro()), Window: time.Minute, Retention: time.Hour}, Waiting: node.Waiting{Wait: true, Ticket: ticket}})
			if err != nil || r.Status != step.want {
				t.Errorf("%v of %v by %s: %v, %v; want %v", step.op, step.share, step.value, r.Status, err, step.want)
			}
		}
	}
	if denied := server.Do("ACL", "LOG"); denied != "" {
		t.Errorf("the server denied something: %s", denied)
	}
}

// minimal sends a request of a client of docs/wire.md, which knows neither groups nor
// the queue. It reports whether that was granted.
func minimal(t testing.TB, server *servertest.Server, op node.Op, value string) bool {
	t.Helper()
	const minute, window = "60000", "60000000"
	now := node.Token(time.Now().UnixMicro()).String()
	args := map[node.Op][]string{
		node.OpAcquire: {value, minute, now, minute, window, "", ""}, node.OpExtend: {value, minute, minute, ""}, node.OpRelease: {value, now, minute, window},
	}[op]
	script := map[node.Op]string{node.OpAcquire: "acquire", node.OpExtend: "extend", node.OpRelease: "release"}[op]
	text, err := os.ReadFile("../../interop/wire/" + script + ".lua")
	must(t, err)
	call := slices.Concat([]string{"EVAL", string(text), "3", "job", "redlatch:1:fence:{job}", "redlatch:1:marker"}, args)
	status, _, _ := strings.Cut(server.Do(call...), "\n")
	return strings.TrimSpace(status) == "granted"
}

// TestMinimalClientBesideShares has minimal clients beside writers, readers and
// slots, in random order. What was granted never conflicts.
func TestMinimalClientBesideShares(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t, 1)[0]
	a := newAsker(t, server)
	held := map[int]node.Share{}
	count := 0
	dice := rand.New(rand.NewPCG(1, 2))
	shares := []node.Share{{}, {}, {}, aReader, aReader, aSlot, aSlot}
	for range 4000 {
		who := dice.IntN(len(shares))
		value, share := fmt.Sprintf("%032x:host/1/x", who), shares[who]
		was, holds := held[who]
		op := []node.Op{node.OpAcquire, node.OpAcquire, node.OpAcquire, node.OpExtend, node.OpRelease, node.OpRelease}[dice.IntN(6)]
		if holds && op == node.OpExtend {
			share = was
		}
		var granted bool
		if who < 2 {
			granted = minimal(t, server, op, value)
		} else {
			r, err := a.n.Do(context.Background(), node.Request{Op: op, Name: "job", Value: value, Share: share, TTL: time.Minute,
				Fencing: node.Fencing{Token: node.Token(time.Now().UnixMicro()), Window: time.Minute, Retention: time.Minute}, Waiting: node.Waiting{Wait: true, Ticket: time.Now().UnixMicro()}})
			must(t, err)
			granted, share = r.Status == node.Granted, r.Share
		}
		switch {
		case op != node.OpAcquire && granted != holds:
			t.Fatalf("%v by %d, which holds %v, is granted: %v", op, who, holds, granted)
		case op == node.OpRelease:
			delete(held, who)
		case op == node.OpAcquire && granted:
			held[who] = share
			count++
		}
		var room nodestate.Room
		slots := map[uint8]bool{}
		for _, s := range held {
			if !room.Take(s) || s.Mode == node.Slotted && slots[s.Slot] {
				exclusion.Never(t, "all of these hold the lock: %v", held)
			}
			slots[s.Slot] = true
		}
	}
	if count < 200 {
		t.Errorf("only %d were granted anything", count)
	}
}
