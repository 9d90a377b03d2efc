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
	"time"

	"github.com/redlatch/redlatch/internal/resp"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"

	"github.com/redlatch/redlatch/test/interop/beside"
	"github.com/redlatch/redlatch/test/interop/former"
)

// contest has three processes of each side contend, for a time or until a rule is
// broken.
func (b *both) contest(lasts time.Duration, flags map[string][]string, kinds ...string) (*beside.Judge, []string) {
	const name = "contended"
	c := beside.Contest{Judge: beside.NewJudge(name, b.servers), Name: name, TTL: ttl, Kinds: kinds, Long: true,
		For: lasts, Limit: time.Minute, Turns: 10, Sides: map[string][]beside.Contender{}}
	for i := range 6 {
		side := turned[0][i%2]
		extra := flags[side]
		if i == 0 {
			extra = append(slices.Clone(extra), "-fresh")
		}
		p := b.start(side, extra...)
		if i == 0 {
			b.cycle(p, "first")
		}
		c.Sides[side] = append(c.Sides[side], p)
	}
	errs := c.Play()
	b.t.Logf("the former client had the lock %d times, the new one %d times", c.Judge.Turns(formerSide), c.Judge.Turns(newSide))
	return c.Judge, errs
}

// check reports what a contest was to show.
func (b *both) check(j *beside.Judge, errs []string) {
	b.t.Helper()
	for _, f := range j.Faults() {
		b.t.Error(f)
	}
	for _, side := range turned[0] {
		if n := j.Turns(side); n < 10 {
			b.t.Errorf("%s had the lock %d times", side, n)
		}
	}
	if len(errs) > 0 {
		b.t.Logf("%d answers were errors, the first: %s", len(errs), errs[0])
	}
}

// TestFormerAndNewClientsExcludeEachOther has processes of two versions contend:
// never do two hold the lock, and tokens grow over both.
func TestFormerAndNewClientsExcludeEachOther(t *testing.T) {
	each(t, []int{1, 3}, func(b *both) { b.check(b.contest(3*time.Second, nil)) })
}

// TestSharesOfFormerAndNewClientsExcludeEachOther does the same with readers,
// slots and writers.
func TestSharesOfFormerAndNewClientsExcludeEachOther(t *testing.T) {
	each(t, []int{1, 3}, func(b *both) {
		b.check(b.contest(3*time.Second, nil, "", "r", "r", "s2", "s2"))
	})
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
	b.cycle(p, "n")
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
	b.cycle(q, "n")
	for i := range b.servers {
		if now := marker(i); now != marked[i] {
			t.Errorf("%s wrote the marker anew:\n%s\n%s", second, marked[i], now)
		}
	}

	b.servers[1].Kill()
	b.servers[1].Restart() // it has forgotten everything
	poll.Until(t, "the server that restarted is marked and trusted", func() bool {
		b.cycle(q, "n")
		return trusted(marker(1), b.servers[1])
	})
	q.Kill()

	// Now the first version needs this server.
	b.servers[2].Kill()
	again := marker(1)
	b.cycle(b.start(first), "n")
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
		b.take(holder, name, "")
		notified := b.notifications()
		got := make(chan *beside.Player, 6)
		var order []*beside.Player
		for i := range 6 {
			// Both versions follow each other in all ways.
			p := b.start([]string{formerSide, newSide, newSide, formerSide, formerSide, newSide}[i])
			order = append(order, p)
			go func() {
				if _, _, err := p.Take(name, ttl, patience, ""); err != nil {
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
			b.order(before, "release")
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
	must(b.t, err)
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
			b.cycle(p, "first") // all servers are marked, all connections open
		}
		for _, sides := range [][2]*beside.Player{{late, next}, {next, late}} {
			late, next := sides[0], sides[1]
			old := b.take(late, "n", "")
			late.Freeze()
			token := b.take(next, "n", "")
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
			b.order(next, "release")
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
			token := b.take(giver, "n", kind)
			got, _, err := beside.Granted(taker.Order("attach", b.order(giver, "detach")))
			if err != nil || got != token {
				t.Errorf("%s resumes the lease of %s with token %d, %v; it was %d", taker.Side, giver.Side, got, err, token)
				continue
			}
			b.order(taker, "release")
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
	b := &both{t: t, servers: servertest.Redis(t, 1), program: map[string]string{formerSide: newWorker(t), newSide: newWorker(t)}}
	j, _ := b.contest(3*time.Second, map[string][]string{newSide: {"-prefix", "2:"}})
	if faults := j.Faults(); !strings.Contains(strings.Join(faults, " "), "overlap") {
		t.Errorf("it is not found that they overlap; found is %q", faults)
	}
}

// TestCheckoutWithoutHistoryIsReported builds a version in a folder without
// history, and one that history does not have.
func TestCheckoutWithoutHistoryIsReported(t *testing.T) {
	t.Parallel()
	none := &former.NoHistory{}
	if _, err := former.Build(former.Version{Name: "here", Ref: "HEAD"}, t.TempDir(), t.TempDir()); !errors.As(err, &none) {
		t.Errorf("a folder without history: %v", err)
	}
	root, err := filepath.Abs("../../..")
	must(t, err)
	cut := former.Version{Name: "cut off", Ref: "0123456789012345678901234567890123456789"}
	if _, err := former.Build(cut, root, t.TempDir()); !errors.As(err, &none) || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("a commit that is not there: %v", err)
	}
}
