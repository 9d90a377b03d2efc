//go:build unix

package former_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redlatch/redlatch/internal/resp"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"

	"github.com/redlatch/redlatch/test/interop/beside"
	"github.com/redlatch/redlatch/test/interop/former"
)

// maxTTL makes the quarantine a little over four seconds.
const maxTTL = "4s"

// The sides.
const (
	formerSide = "the former client"
	newSide    = "the new client"
)

// turned are both orders of the sides.
var turned = [][2]string{{formerSide, newSide}, {newSide, formerSide}}

func TestMain(m *testing.M) { former.Main(m) }

// both are the workers of two versions on the same servers.
type both struct {
	t       *testing.T
	servers []*servertest.Server
	program map[string]string // by side
}

// start returns a process of a side.
func (b *both) start(side string, flags ...string) *beside.Player {
	b.t.Helper()
	return beside.Start(b.t, side, true, append([]string{b.program[side], "-label", strings.ReplaceAll(side, " ", "-"),
		"-nodes", strings.Join(servertest.Addresses(b.servers), ","), "-max-ttl", maxTTL}, flags...)...)
}

// each runs a test with each earlier version, on so many servers each.
func each(t *testing.T, sizes []int, test func(b *both)) {
	t.Parallel()
	servertest.Need(t)
	for _, v := range former.Versions() {
		for _, n := range sizes {
			t.Run(fmt.Sprintf("%s on %d", v.Name, n), func(t *testing.T) {
				t.Parallel()
				program := map[string]string{formerSide: former.Worker(t, v), newSide: former.Worker(t, former.Version{})}
				test(&both{t: t, program: program, servers: servertest.Redis(t, n)})
			})
		}
	}
}

// contest has three processes of each side contend.
func (b *both) contest(flags map[string][]string, kinds ...string) *beside.Contest {
	const name = "contended"
	c := &beside.Contest{Judge: beside.NewJudge(name, b.servers), Name: name, Kinds: kinds, Sides: map[string][]beside.Contender{}}
	for i := range 6 {
		side := turned[0][i%2]
		extra := flags[side]
		if i == 0 {
			extra = append(slices.Clone(extra), "-fresh")
		}
		p := b.start(side, extra...)
		if i == 0 {
			p.Cycle("first")
		}
		c.Sides[side] = append(c.Sides[side], p)
	}
	c.PlayFor(b.t)
	return c
}

// TestFormerAndNewClientsExcludeEachOther has processes of two versions contend:
// never do two hold the lock, and tokens grow over both.
func TestFormerAndNewClientsExcludeEachOther(t *testing.T) {
	each(t, []int{1, 3}, func(b *both) { b.contest(nil).Check(b.t) })
}

// TestSharesOfFormerAndNewClientsExcludeEachOther does the same with readers,
// slots and writers.
func TestSharesOfFormerAndNewClientsExcludeEachOther(t *testing.T) {
	each(t, []int{1, 3}, func(b *both) { b.contest(nil, "", "r", "r", "s2", "s2").Check(b.t) })
}

// TestMarkerIsSharedByFormerAndNewClients has one version mark the servers, and
// the other use them at once, mark one that restarted empty, and be trusted with
// that by the first.
func TestMarkerIsSharedByFormerAndNewClients(t *testing.T) {
	t.Parallel()
	for _, sides := range turned {
		t.Run(sides[0]+" marks", func(t *testing.T) {
			each(t, []int{3}, func(b *both) { b.markerIsShared(sides[0], sides[1]) })
		})
	}
}

func (b *both) markerIsShared(first, second string) {
	const key = "redlatch:1:marker"
	t := b.t
	p := b.start(first, "-fresh")
	p.Cycle("n")
	// Without the epochs of all servers, which any client adds when it hears of a higher one.
	marker := func(i int) string {
		fields := strings.Split(b.servers[i].Do("GET", key), " ")
		if len(fields) > 13 {
			fields[13] = "-"
		}
		return strings.Join(fields, " ")
	}
	var marked []string
	for i := range b.servers {
		poll.Until(t, "every server is marked", func() bool { return marker(i) != "" })
		marked = append(marked, marker(i))
	}
	p.Kill()

	q := b.start(second)
	q.Cycle("n")
	for i := range b.servers {
		if now := marker(i); now != marked[i] {
			t.Errorf("%s wrote the marker anew:\n%s\n%s", second, marked[i], now)
		}
	}

	b.servers[1].Kill()
	b.servers[1].Restart() // it has forgotten everything
	poll.Until(t, "the server that restarted is marked and trusted", func() bool {
		q.Cycle("n")
		return trusted(marker(1), b.servers[1])
	})
	q.Kill()

	// Now the first version needs this server.
	b.servers[2].Kill()
	again := marker(1)
	b.start(first).Cycle("n")
	if now := marker(1); now != again {
		t.Errorf("%s wrote the marker anew:\n%s\n%s", first, again, now)
	}
}

// trusted reports whether a marker is the server's own, and its quarantine over.
func trusted(marker string, s *servertest.Server) bool {
	fields := strings.Fields(marker)
	if len(fields) < 14 || !strings.Contains(s.Do("INFO", "replication"), "master_replid:"+fields[1]) {
		return false
	}
	now := strings.Fields(s.Do("TIME"))
	return fields[9] < fmt.Sprintf("%010s%06s", now[0], now[1])
}

// TestQueueIsSharedByFormerAndNewClients has waiters of both versions in one
// queue. They are served in the order in which they came, and each release
// notifies the next, of whatever version.
func TestQueueIsSharedByFormerAndNewClients(t *testing.T) {
	each(t, []int{1, 3}, func(b *both) {
		const name, queue = "queued", "redlatch:1:queue:{queued}"
		t := b.t
		holder := b.start(newSide, "-fresh")
		holder.Get(name, "")
		notified := b.notifications()
		got := make(chan *beside.Player, 6)
		var order []*beside.Player
		for i := range 6 {
			// Both versions follow each other in all ways.
			p := b.start([]string{formerSide, newSide, newSide, formerSide, formerSide, newSide}[i])
			order = append(order, p)
			go func() {
				if _, _, err := p.Take(name, beside.TTL, beside.Patience, ""); err != nil {
					t.Errorf("%s does not get the lock: %v", p.Side, err)
				}
				got <- p
			}()
			poll.Until(t, "the waiter is in the queue of every server", func() bool {
				for _, s := range b.servers {
					if s.Do("ZCARD", queue) != fmt.Sprint(i+1) {
						return false
					}
				}
				return true
			})
		}
		before := holder
		for i, want := range order {
			before.Must("release")
			p := <-got
			if p != want {
				t.Errorf("waiter %d, %s, got the lock before %s", slices.Index(order, p), p.Side, want.Side)
			}
			poll.Until(t, fmt.Sprintf("%s notified waiter %d", before.Side, i), func() bool { return notified() > i })
			before = p
		}
	})
}

// notifications counts the messages on the first server that say that it is
// somebody's turn.
func (b *both) notifications() func() int {
	b.t.Helper()
	c, err := resp.Dial("tcp", b.servers[0].Addr())
	check.Must(b.t, err)
	b.t.Cleanup(func() { c.Close() })
	if _, err := c.Do("PSUBSCRIBE", "redlatch:1:inbox:*"); err != nil {
		b.t.Fatal(err)
	}
	var turns atomic.Int32
	go func() {
		for {
			message, err := c.Receive()
			if err != nil {
				return // the test is over
			}
			// pmessage, the pattern, the channel and the message.
			if len(message.Items) == 4 && strings.HasPrefix(message.Items[3].Text, "t") {
				turns.Add(1)
			}
		}
	}()
	return func() int { return int(turns.Load()) }
}

// TestLateFormerAndNewClientsTakeNothing has a holder of one version be frozen
// until its lock has expired and the other version has it. What it does then
// changes nothing.
func TestLateFormerAndNewClientsTakeNothing(t *testing.T) {
	each(t, []int{1, 3}, func(b *both) {
		t := b.t
		late, next := b.start(formerSide, "-fresh"), b.start(newSide)
		for _, p := range []*beside.Player{late, next} {
			p.Cycle("first") // all servers are marked, all connections open
		}
		for _, sides := range [][2]*beside.Player{{late, next}, {next, late}} {
			late, next := sides[0], sides[1]
			old := late.Get("n", "")
			late.Freeze()
			token := next.Get("n", "")
			if token <= old {
				exclusion.Never(t, "%s has token %d after %d", next.Side, token, old)
			}
			late.Thaw()
			if a := late.Order("release"); a.OK() {
				t.Errorf("%s does not learn that it has lost the lock", late.Side)
			}
			if token2 := b.heldBy(next); token2 != "" {
				t.Errorf("%s changed the key of %s: %s", late.Side, next.Side, token2)
			}
			next.Must("release")
		}
	})
}

// heldBy says what is wrong, if a process does not have the lock n on a quorum.
func (b *both) heldBy(p *beside.Player) string {
	var values []string
	n := 0
	for _, s := range b.servers {
		value := s.Do("GET", "n")
		values = append(values, value)
		if strings.Contains(value, strings.ReplaceAll(p.Side, " ", "-")) {
			n++
		}
	}
	if a := p.Order("valid"); a.OK() && n > len(b.servers)/2 {
		return ""
	}
	return fmt.Sprintf("%q", values)
}

// TestHandlesAreSharedByFormerAndNewClients has a lease go from a process of one
// version to one of the other, by its handle.
func TestHandlesAreSharedByFormerAndNewClients(t *testing.T) {
	t.Parallel()
	t.Run("exclusive", func(t *testing.T) { each(t, []int{1}, func(b *both) { b.handlesAreShared("") }) })
	t.Run("shares", func(t *testing.T) {
		each(t, []int{1}, func(b *both) { b.handlesAreShared("r", "s3") })
	})
}

func (b *both) handlesAreShared(kinds ...string) {
	t := b.t
	for _, sides := range turned {
		for _, kind := range kinds {
			giver, taker := b.start(sides[0]), b.start(sides[1])
			token := giver.Get("n", kind)
			got, _, err := beside.Granted(taker.Order("attach", giver.Must("detach")))
			if err != nil || got != token {
				t.Errorf("%s resumes the lease of %s with token %d, %v; it was %d", taker.Side, giver.Side, got, err, token)
				continue
			}
			taker.Must("release")
			for _, s := range b.servers {
				if keys := s.Keys(); len(keys) > 0 {
					t.Errorf("%s released the lease of %s, and left %q", taker.Side, giver.Side, keys)
				}
			}
		}
	}
}

// TestContestFindsClientsOfAnotherFormat shows that the tests above can fail: a
// client with another key for the lock is found by two holders.
func TestContestFindsClientsOfAnotherFormat(t *testing.T) {
	t.Parallel()
	servertest.Need(t)
	program := former.Worker(t, former.Version{})
	b := &both{t: t, servers: servertest.Redis(t, 1), program: map[string]string{formerSide: program, newSide: program}}
	c := b.contest(map[string][]string{newSide: {"-prefix", "2:"}})
	if faults := c.Judge.Faults(); !strings.Contains(strings.Join(faults, " "), "overlap") {
		t.Errorf("it is not found that they overlap; found is %q", faults)
	}
}

// TestCheckoutWithoutHistoryIsReported builds a version in a folder without
// history, and one that history does not have.
func TestCheckoutWithoutHistoryIsReported(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../../..")
	check.Must(t, err)
	cut := former.Version{Name: "cut off", Ref: "0123456789012345678901234567890123456789"}
	for root, v := range map[string]former.Version{t.TempDir(): {Name: "here", Ref: "HEAD"}, root: cut} {
		if _, err := former.Build(v, root, t.TempDir()); !errors.Is(err, former.ErrNoHistory) || !strings.Contains(err.Error(), v.Name) {
			t.Errorf("%s: %v", v.Name, err)
		}
	}
}
