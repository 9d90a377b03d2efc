//go:build unix

// Package scenario puts a foreign client and redlatch on one key, on real
// servers, and judges the result. The judge is neither of the two: it reads the
// servers itself, and uses its own clock.
package scenario

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/fresh"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/store/redis/direct"

	"github.com/redlatch/redlatch/test/interop/foreign"
)

const (
	// short is a time to live that a scenario waits for. It is a whole second,
	// since some clients count in seconds.
	short = time.Second
	// long is one that no scenario waits for. redlatch extends after a third of
	// it, and two reads of a key must not be that far apart.
	long = 24 * time.Second
	// soon is the time limit for something that takes a moment, on a busy
	// machine.
	soon = 20 * time.Second
)

// Stage is a foreign client and redlatch on the same servers.
type Stage struct {
	t       testing.TB
	ctx     context.Context
	client  *foreign.Client
	servers []*servertest.Server
	locks   *redlatch.Client // redlatch
	other   *redlatch.Client // another process of redlatch's side
	it      *foreign.Process // the foreign client
	name    string           // of the lock, new for each scenario
}

// newStage starts servers, and both sides on them.
func newStage(t testing.TB, p Part) (*Stage, error) {
	s := &Stage{t: t, ctx: context.Background(), client: p.Client, servers: servertest.Redis(t, p.Nodes)}
	s.locks, s.other = s.redlatch(), s.redlatch()
	var err error
	if p.Nodes > 1 { // a single server is not guarded by default
		if err = fresh.Declare(s.ctx, s.locks); err != nil {
			return s, err
		}
	}
	s.it, err = s.process()
	return s, err
}

// redlatch returns a client of ours, as another process would have it.
func (s *Stage) redlatch() *redlatch.Client {
	nodes, err := direct.Nodes(servertest.Addresses(s.servers)...)
	check.Must(s.t, err)
	c, err := redlatch.New(nodes, &redlatch.Options{
		Prefix: s.client.Prefix, Label: "interop", AssumeFresh: true,
		NodeTimeout: 2 * time.Second, // others share this machine
	})
	check.Must(s.t, err)
	s.t.Cleanup(func() { c.Close() })
	return c
}

// process returns one more process of the foreign client.
func (s *Stage) process() (*foreign.Process, error) {
	p, err := foreign.Start(s.client, servertest.Hosts(s.servers))
	if err == nil {
		s.t.Cleanup(p.Kill)
	}
	return p, err
}

func (s *Stage) key() string { return s.client.Prefix + s.name }

func (s *Stage) quorum() int { return len(s.servers)/2 + 1 }

// failure ends a scenario: a rule was broken.
type failure struct {
	ours bool // by redlatch
	text string
}

// must ends the scenario unless the foreign client kept a rule.
func (s *Stage) must(kept bool, format string, args ...any) {
	if !kept {
		panic(failure{text: fmt.Sprintf(format, args...)})
	}
}

// weMust ends the scenario unless redlatch kept a rule.
func (s *Stage) weMust(kept bool, format string, args ...any) {
	if !kept {
		panic(failure{ours: true, text: fmt.Sprintf(format, args...)})
	}
}

// state is the key of one server at one moment; kind is none if there is no
// key. It was read between two moments.
type state struct {
	kind, content string
	left          time.Duration
	from, to      time.Time
}

// do sends a server a command, and repeats it if a busy machine made it time
// out.
func (s *Stage) do(server *servertest.Server, args ...string) (reply string) {
	var err error
	if !poll.Holds(soon, func() bool { reply, err = server.Try(args...); return err == nil }) {
		s.t.Fatalf("%s: %v", args[0], err)
	}
	return reply
}

// look reads the lock's key on every server.
func (s *Stage) look() []state {
	states := make([]state, len(s.servers))
	for i, server := range s.servers {
		from := time.Now()
		// A script, so that the three values belong together.
		got := strings.SplitN(s.do(server, "EVAL", `
			return {redis.call('TYPE', KEYS[1]).ok, tostring(redis.call('PTTL', KEYS[1])),
				redis.sha1hex(redis.call('DUMP', KEYS[1]) or '')}`, "1", s.key()), "\n", 3)
		ms, err := time.ParseDuration(got[1] + "ms")
		check.Must(s.t, err)
		states[i] = state{got[0], got[2], ms, from, time.Now()}
	}
	return states
}

// What is done to a key that stays its owner's.
const (
	lengthened = "lengthened it"
	shortened  = "shortened it"
)

// untouched reports what was done to the keys of the client that had most of
// them. The passing of time is no change. Other keys are ignored: a holder has
// a quorum, and elsewhere another client's key may expire or be undone.
func untouched(before, after []state) string {
	owner := ownerOf(before)
	for i := range before {
		b, a := before[i], after[i]
		// Servers count whole milliseconds, of the wall clock: a machine that was
		// stopped for a while sets it forward.
		passed := max(a.to.Sub(b.from), a.to.Round(0).Sub(b.from.Round(0))) + 2*time.Millisecond
		switch {
		case b.kind == "none" || b.content != owner:
		case b.left >= 0 && b.left <= passed: // it may have expired
		case a.kind == "none":
			return "deleted it"
		case b.content != a.content:
			return "replaced it"
		case a.left > b.left:
			return lengthened
		case b.left-a.left > passed:
			return shortened
		}
	}
	return ""
}

// ownerOf returns the content of the key that most servers have.
func ownerOf(states []state) string {
	votes, owner := map[string]int{}, ""
	for _, x := range states {
		if x.kind == "none" {
			continue
		}
		if votes[x.content]++; votes[x.content] > votes[owner] {
			owner = x.content
		}
	}
	return owner
}

// there counts the servers that have a key.
func there(states []state) int {
	n := 0
	for _, x := range states {
		if x.kind != "none" {
			n++
		}
	}
	return n
}

// first returns the first key that exists: a client that has its quorum may
// have skipped the other servers.
func first(states []state) state {
	for _, x := range states {
		if x.kind != "none" {
			return x
		}
	}
	return state{kind: "none"}
}

// take is the foreign client's lock of a name that is free.
func (s *Stage) take(p *foreign.Process, ttl time.Duration) []state {
	var a foreign.Answer
	s.must(poll.Holds(soon, func() bool { a = p.Acquire(s.name, ttl); return a.OK() }), "does not get a free lock: %s", a)
	states := s.look()
	s.must(there(states) >= s.quorum(), "says that it has the lock, and its key is on %d of %d servers", there(states), len(states))
	s.must(first(states).left > 0, "has a key with no expiry")
	return states
}

// ours is redlatch's lock, which waits until the present holder has expired.
func (s *Stage) ours(opts redlatch.LockOptions) *redlatch.Lease {
	opts.Wait = cmp.Or(opts.Wait, soon)
	lease, err := s.locks.Lock(s.ctx, s.name, &opts)
	s.weMust(err == nil, "does not get the lock: %v", err)
	return lease
}

func (s *Stage) free(lease *redlatch.Lease) {
	err := lease.Release(s.ctx)
	s.weMust(err == nil, "cannot release: %v", err)
}

// refused is the error that redlatch gets for a lock that a foreign client
// holds.
func (s *Stage) refused() redlatch.Holder {
	lease, err := s.locks.TryLock(s.ctx, s.name, &redlatch.LockOptions{TTL: long})
	if err == nil {
		lease.Release(s.ctx)
	}
	var held *redlatch.HeldError
	s.weMust(errors.As(err, &held), "is not refused as held: %v", err)
	return held.Holders[0]
}
