//go:build unix

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// life is what happened to a contender; moments that did not come are 0.
type life struct {
	number                                            int
	arriving, arrived, acquired, validTill, releasing time.Duration
	killed                                            bool
}

func (l life) String() string {
	text := fmt.Sprintf("number %d", l.number)
	if l.killed {
		text += " and was killed"
	}
	return text
}

// judge says what is wrong with a history: two held the lock at once, or a
// survivor never had it. It also says what is late: survivors had the lock in
// another order than they arrived in, or the queue did not move for longer than
// the slack and the dead in it account for. A waiter that answers its
// notification too late is skipped, so on a stalled machine only the first is
// an error.
func judge(lives []life, ttl, slack time.Duration) (wrong, late error) {
	var wrongs, lates []error
	var served []life
	for _, l := range lives {
		switch {
		case l.acquired == 0 && !l.killed:
			wrongs = append(wrongs, fmt.Errorf("%v never had the lock", l))
		case l.acquired != 0 && l.releasing == 0 && !l.killed:
			wrongs = append(wrongs, fmt.Errorf("%v never released it", l))
		case l.acquired != 0:
			served = append(served, l)
		}
	}
	slices.SortFunc(served, func(a, b life) int { return int(a.acquired - b.acquired) })
	for i, a := range served {
		if i > 0 {
			last := served[i-1]
			dead := 0
			for _, l := range lives {
				if l.killed && l.number >= last.number && l.number <= a.number {
					dead++
				}
			}
			// Each of them may have died just as it was granted the lock.
			if gap := a.acquired - last.acquired; gap > time.Duration(max(dead, 1))*(ttl+time.Second)+slack {
				lates = append(lates, fmt.Errorf("%v was served %v after %v, with %d dead thereabouts", a, gap, last, dead))
			}
		}
		until := a.releasing
		if until == 0 {
			until = a.validTill // killed while it held the lock
		}
		for _, b := range served[i+1:] {
			if b.acquired < until {
				wrongs = append(wrongs, fmt.Errorf("%v had the lock until %v, and %v from %v on", a, until, b, b.acquired))
			}
			if !a.killed && !b.killed && b.arrived < a.arriving {
				lates = append(lates, fmt.Errorf("%v was served %v before %v", a, b.acquired-a.acquired, b))
			}
		}
	}
	return errors.Join(wrongs...), errors.Join(lates...)
}

func TestJudgeOfTheCrowdFindsWhatIsWrong(t *testing.T) {
	good := func() []life {
		var lives []life
		for i := range 6 {
			at := time.Duration(i+1) * time.Millisecond
			lives = append(lives, life{number: i, arriving: at, arrived: at + 100, acquired: 100 * at, validTill: 190 * at, releasing: 100*at + 50*time.Millisecond})
		}
		lives[1] = life{number: 1, arriving: lives[1].arriving, arrived: lives[1].arrived, killed: true}
		lives[3].killed, lives[3].releasing, lives[3].validTill = true, 0, 490*time.Millisecond
		return lives
	}
	if err := errors.Join(judge(good(), time.Second, slack)); err != nil {
		t.Fatalf("nothing is wrong, and yet: %v", err)
	}
	for _, c := range []struct {
		what, want string
		doctor     func(lives []life)
	}{
		{"two at once", "had the lock until", func(l []life) { l[2].acquired = l[0].releasing - 1 }},
		{"before a dead holder's time is over", "had the lock until", func(l []life) { l[4].acquired = l[3].validTill - 1 }},
		{"a survivor without", "never had the lock", func(l []life) { l[5].acquired = 0 }},
		{"a survivor that lost it", "never released it", func(l []life) { l[5].releasing = 0 }},
		{"a line that stood still", "thereabouts", func(l []life) { l[5].acquired += 3 * time.Second; l[5].releasing += 3 * time.Second }},
		{"out of order", "was served", func(l []life) {
			l[4].arriving, l[4].arrived, l[5].arriving, l[5].arrived = l[5].arriving, l[5].arrived, l[4].arriving, l[4].arrived
		}},
	} {
		lives := good()
		c.doctor(lives)
		if err := errors.Join(judge(lives, time.Second, slack)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the judge says %v", c.what, err)
		}
	}
}

// queueOf returns the key of the node queue of a name without braces.
func queueOf(name string) string { return "redlatch:1:queue:{" + name + "}" }

// inLine complains unless so many wait for the name on each server.
func inLine(servers []*servertest.Server, name string, want int) func() error {
	return func() error {
		for i, s := range servers {
			if n := s.Do("ZCARD", queueOf(name)); n != strconv.Itoa(want) {
				return fmt.Errorf("%s wait on server %d, want %d; the servers have %s", n, i, want, queues(servers, name))
			}
		}
		return nil
	}
}

// queues describes who has a name on each server, and who waits for it.
func queues(servers []*servertest.Server, name string) string {
	var all []string
	for _, s := range servers {
		holder := s.Do("TYPE", name) // of a foreign client
		if holder == "string" {
			holder = s.Do("GET", name)
		}
		all = append(all, fmt.Sprintf("%q before %q", holder, s.Do("ZRANGE", queueOf(name), "0", "-1")))
	}
	return strings.Join(all, ", ")
}

// inLineOnAQuorum complains unless so many wait for the name on each server of
// a quorum.
func inLineOnAQuorum(servers []*servertest.Server, name string, want int) func() error {
	return func() error {
		on := map[string]int{}
		for _, s := range servers {
			for member := range strings.SplitSeq(s.Do("ZRANGE", queueOf(name), "0", "-1"), "\n") {
				value, _, _ := strings.Cut(member, "\x00")
				on[value]++
			}
		}
		n := 0
		for _, count := range on {
			if count > len(servers)/2 {
				n++
			}
		}
		if n != want {
			return fmt.Errorf("%d wait on a quorum, want %d", n, want)
		}
		return nil
	}
}

// TestAHundredContendersAreServedInOrderThoughSomeAreKilled has processes
// killed at every point of their waiting and while they hold the lock.
func TestAHundredContendersAreServedInOrderThoughSomeAreKilled(t *testing.T) {
	t.Parallel()
	timed(t, func(t testing.TB) {
		const (
			crowd       = 100
			killWaiting = 20
			killHolding = 3
			ttl         = time.Second
		)
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 0))

		servers := servertest.Redis(t, 5)
		o := orders{Driver: "goredis", Name: "crowd", Addresses: servertest.Addresses(servers), TTL: ttl}
		first := newClient(t, open(t, o.Addresses...), redlatch.Options{})
		lease := holdOnAll(t, first, servers, "crowd", redlatch.LockOptions{})

		// A few at a time, so that none waits long for its first connection.
		start := time.Now()
		contenders := make([]*contender, crowd)
		for batch := range slices.Chunk(contenders, 20) {
			for i := range batch {
				batch[i] = startContender(t, o)
			}
			for _, p := range batch {
				p.await(ready, patience)
			}
		}

		t.Logf("started after %v", time.Since(start))
		// Some are killed while they hold the lock. Of the others some are
		// killed before the first hand-over, the head among them. The rest are
		// killed at a random moment of the run, each time the next to be served
		// or one further back.
		order := random.Perm(crowd - 1)
		holding := map[int]bool{}
		for _, i := range order[:killHolding] {
			holding[i+1] = true
		}
		victims := order[killHolding : killHolding+killWaiting-1]
		early, later := victims[:killWaiting/2], victims[killWaiting/2:]

		for i, p := range contenders {
			if holding[i] {
				p.ask(-1)
			} else {
				p.ask(time.Millisecond)
			}
			if i%20 == 19 { // nor for its first answer
				eventually(t, patience, inLineOnAQuorum(servers, "crowd", i+1))
			}
		}

		lives := make([]life, crowd)
		kill := func(i int) {
			if !lives[i].killed {
				lives[i].killed = true
				contenders[i].signal(syscall.SIGKILL)
			}
		}
		kill(0)
		for _, i := range early {
			kill(i + 1)
		}
		t.Logf("in line after %v", time.Since(start))
		began := monotonic()
		must(t, lease.Release(context.Background()))

		// The late ones are killed when those before them have been served:
		// half of them as they are notified, half somewhat further back in the
		// queue.
		// Checked more often than by poll, so that they are met there.
		for end := time.Now().Add(2 * patience); ; time.Sleep(5 * time.Millisecond) {
			open, served := 0, 0
			for i, p := range contenders {
				_, has := p.at(acquired)
				if has {
					served = i + 1
				}
				if has && holding[i] {
					kill(i)
				}
				if _, done := p.at(released); !done && !lives[i].killed {
					open++
				}
			}
			for _, i := range later {
				if i++; i-served <= 3*(i%2) {
					kill(i)
				}
			}
			if open == 0 {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%d have not been served yet", open)
			}
		}
		for i, p := range contenders {
			if lives[i].killed {
				<-p.ended // and has reported all its events
			}
		}
		t.Logf("served within %v", monotonic()-began)

		for i, p := range contenders {
			l := &lives[i]
			l.number = i
			for event, at := range map[string]*time.Duration{
				arriving: &l.arriving, arrived: &l.arrived, acquired: &l.acquired, validTill: &l.validTill, releasing: &l.releasing,
			} {
				*at, _ = p.at(event)
			}
		}
		wrong, late := judge(lives, ttl, allow(slack, start))
		if wrong != nil {
			never(t, "%v", wrong)
		}
		if late != nil {
			t.Error(late)
		}
		// The place of a waiter that was killed at the end of the queue
		// expires. A survivor has none.
		alive := map[string]bool{}
		for i, p := range contenders {
			alive[strconv.Itoa(p.cmd.Process.Pid)] = !lives[i].killed
		}
		eventually(t, undone, func() error {
			for i, s := range servers {
				for member := range strings.SplitSeq(s.Do("ZRANGE", queueOf("crowd"), "0", "-1"), "\n") {
					if parts := strings.Split(member, "/"); len(parts) > 1 && alive[parts[len(parts)-2]] {
						return fmt.Errorf("%q still waits on server %d", member, i)
					}
				}
			}
			return nil
		})
	})
}

// nothingLeft complains if a lock, a queue or a notification is left on any
// server.
func nothingLeft(servers []*servertest.Server, name string) func() error {
	return func() error {
		for i, s := range servers {
			for key := range strings.SplitSeq(s.Do("KEYS", "*"), "\n") {
				if key == name || strings.HasPrefix(key, "redlatch:1:queue:") || strings.HasPrefix(key, "redlatch:1:turn:") {
					return fmt.Errorf("server %d has %q", i, key)
				}
			}
		}
		return nil
	}
}
