//go:build unix

package fence_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/node"
)

func TestReadersAndWritersAreRefusedByTheTable(t *testing.T) {
	ctx := context.Background()
	type step struct {
		who          string // "r" or "w"
		token        node.Token
		staleAgainst node.Token
	}
	eachStore(t, func(t *testing.T, s store) {
		for name, steps := range map[string][]step{
			"writers alone": {{"w", 5, 0}, {"w", 5, 0}, {"w", 4, 5}, {"w", 9, 0}, {"w", 5, 9}, {"w", 8, 9}, {"w", 9, 0},
				{"w", node.MaxToken, 0}, {"w", node.MaxToken - 1, node.MaxToken}},
			"readers in any order":               {{"r", 5, 0}, {"r", 3, 0}, {"r", 9, 0}, {"r", 5, 0}, {"r", 1, 0}},
			"a paused writer after a reader":     {{"w", 3, 0}, {"r", 5, 0}, {"w", 3, 5}, {"w", 4, 5}},
			"a paused writer after a low reader": {{"w", 3, 0}, {"r", 9, 0}, {"r", 5, 0}, {"w", 8, 9}},
			"a stale reader after a writer":      {{"r", 5, 0}, {"w", 7, 0}, {"r", 5, 7}, {"r", 6, 7}, {"r", 8, 0}},
			"a stale reader after more readers":  {{"w", 7, 0}, {"r", 9, 0}, {"r", 8, 0}, {"r", 6, 7}, {"r", 8, 0}},
			"the next writer":                    {{"w", 3, 0}, {"r", 5, 0}, {"w", 6, 0}, {"w", 6, 0}, {"w", 5, 6}, {"r", 5, 6}},
			"a writer that was downgraded":       {{"w", 3, 0}, {"r", 3, 0}, {"r", 6, 0}, {"r", 3, 0}, {"w", 3, 6}, {"r", 2, 3}},
			"a writer that nobody heard of":      {{"r", 9, 0}, {"r", 5, 0}, {"w", 7, 9}, {"r", 5, 0}},
			"a refused reader leaves no trace":   {{"w", 7, 0}, {"r", 5, 7}, {"w", 7, 0}, {"r", 7, 0}, {"r", 6, 7}},
			"a refused writer leaves no trace":   {{"r", 9, 0}, {"w", 7, 9}, {"r", 1, 0}},
			"tokens are exact to the last digit": {{"w", node.MaxToken - 2, 0}, {"r", node.MaxToken, 0}, {"r", node.MaxToken - 1, 0}, {"r", node.MaxToken - 3, node.MaxToken - 2}, {"w", node.MaxToken - 1, node.MaxToken}},
			"tokens of 15 digits and of 16": {{"w", 999_999_999_999_999, 0}, {"w", 1_000_000_000_000_000, 0},
				{"w", 999_999_999_999_999, 1_000_000_000_000_000}, {"w", 1_763_000_000_123_457, 0}, {"w", 1_763_000_000_123_456, 1_763_000_000_123_457}},
			"two writers, and a reader of before": {{"r", 4, 0}, {"w", 5, 0}, {"w", 6, 0}, {"r", 8, 0}, {"r", 7, 0}, {"r", 4, 6}, {"r", 5, 6}},
		} {
			for i, step := range steps {
				check := s.Check
				if step.who == "r" {
					check = s.CheckRead
				}
				err := check(ctx, name, step.token)
				var stale *fence.StaleError
				switch {
				case step.staleAgainst == 0 && err != nil:
					t.Errorf("%s: step %d, %s %d: %v", name, i, step.who, step.token, err)
				case step.staleAgainst != 0 && (!errors.As(err, &stale) || stale.Token != step.token || stale.Highest != step.staleAgainst):
					t.Errorf("%s: step %d, %s %d: got %v, want it to be stale against %d", name, i, step.who, step.token, err, step.staleAgainst)
				}
			}
			top := slices.MaxFunc(steps, func(a, b step) int { return cmp.Compare(a.token, b.token) }).token
			if highest, err := s.highest(name); err != nil || highest != top {
				t.Errorf("%s: at the end the highest is %d, %v, want %d", name, highest, err, top)
			}
		}
	})
}

// A lease in a random schedule. Its place in the order of acquisitions is what
// the rule is about; a resource knows its token alone.
type lease struct {
	place int
	token node.Token
	reads bool
	valid bool
	wrote bool // a write was accepted
	read  bool // a read was accepted
}

func (l *lease) String() string {
	kind := map[bool]string{true: "reader", false: "writer"}[l.reads]
	return fmt.Sprintf("%s %d (valid: %t)", kind, l.token, l.valid)
}

// lockRule grants leases with tokens by the rule of the lock: a writer's is above
// every earlier one, a reader's is above every earlier writer's.
type lockRule struct {
	leases          []*lease
	highest, writer node.Token
}

func (k *lockRule) acquire(t *rapid.T, reads bool) {
	gap := node.Token(rapid.IntRange(1, 5).Draw(t, "gap"))
	l := &lease{place: len(k.leases), token: k.highest + gap, reads: reads, valid: true}
	if reads {
		l.token = k.writer + gap
	} else {
		k.writer = l.token
	}
	k.highest = max(k.highest, l.token)
	for _, other := range k.leases {
		// It was not released: its holder is paused, and will continue.
		other.valid = other.valid && reads && other.reads
	}
	k.leases = append(k.leases, l)
}

// downgrade makes the valid writer a reader. It has written, or never will.
func (k *lockRule) downgrade() {
	for _, l := range k.leases {
		l.reads = l.reads || l.valid
	}
}

// TestStaleReadersAndWritersAreRefusedAndNoOthers runs random schedules in which
// leases are lost and their holders go on. Some writers know nothing of
// readers.
func TestStaleReadersAndWritersAreRefusedAndNoOthers(t *testing.T) {
	ctx := context.Background()
	eachStore(t, func(t *testing.T, s store) {
		var resources atomic.Int64
		rapid.Check(t, func(t *rapid.T) {
			resource := fmt.Sprint("r", resources.Add(1))
			lock := &lockRule{writer: node.Token(rapid.IntRange(0, 100).Draw(t, "first"))}
			lock.highest = lock.writer
			lock.acquire(t, rapid.Bool().Draw(t, "reads"))
			for range rapid.IntRange(1, 40).Draw(t, "steps") {
				switch rapid.IntRange(0, 9).Draw(t, "what") {
				case 0, 1:
					lock.acquire(t, false)
				case 2, 3:
					lock.acquire(t, true)
				case 4:
					lock.downgrade()
				default:
					l := rapid.SampledFrom(lock.leases[max(0, len(lock.leases)-5):]).Draw(t, "lease")
					check := s.Check
					if l.reads {
						check = s.CheckRead
					} else if s.put != nil && rapid.Bool().Draw(t, "former") {
						check = s.former
					}
					err := check(ctx, resource, l.token)
					if err != nil && !errors.Is(err, fence.ErrStale) {
						t.Fatalf("breaks the rule: no verdict on %v: %v", l, err)
					}
					lock.judge(t, l, err)
				}
			}
		})
	})
}

// judge says whether a lease had to be refused.
func (k *lockRule) judge(t *rapid.T, l *lease, err error) {
	var newer *lease
	for _, other := range k.leases {
		if other.place > l.place && (other.wrote || other.read && !l.reads) {
			newer = other
		}
	}
	switch {
	case newer != nil && err == nil:
		t.Fatalf("breaks the rule: %v was accepted after %v", l, newer)
	case newer == nil && err != nil:
		t.Fatalf("breaks the rule: %v was refused for nothing: %v", l, err)
	}
	if stale, ok := errors.AsType[*fence.StaleError](err); ok && stale.Highest != 0 && (stale.Token != l.token || stale.Highest <= l.token) {
		t.Fatalf("breaks the rule: %v was refused by %v", l, err)
	}
	if err == nil {
		l.wrote, l.read = l.wrote || !l.reads, l.read || l.reads
	}
}

// TestReadersAndWritersAtOnceKeepTheRule has many claim one resource at once.
// Writers have even tokens.
func TestReadersAndWritersAtOnceKeepTheRule(t *testing.T) {
	const workers, each, spread = 8, 25, 500
	ctx := context.Background()
	type claim struct {
		token, highest node.Token
		reads          bool
		accepted       bool
		before, after  int64
	}
	eachStore(t, func(t *testing.T, s store) {
		var clock atomic.Int64
		var wg sync.WaitGroup
		var mu sync.Mutex
		var all []claim
		for range workers {
			wg.Go(func() {
				for i := range each {
					c := claim{token: node.Token(1 + i*spread/2 + rand.IntN(spread))}
					check := s.Check
					if c.token%2 == 1 {
						c.reads, check = true, s.CheckRead
					}
					c.before = clock.Add(1)
					err := check(ctx, "r", c.token)
					c.after = clock.Add(1)
					if stale, ok := errors.AsType[*fence.StaleError](err); ok {
						c.highest = stale.Highest
					} else if err != nil {
						t.Errorf("token %d: %v", c.token, err)
						return
					}
					c.accepted = err == nil
					mu.Lock()
					all = append(all, c)
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		n, top := 0, node.Token(0)
		for _, c := range all {
			because := c.accepted
			for _, other := range all {
				if !other.accepted || other.token <= c.token || c.reads && other.reads {
					continue
				}
				if c.accepted && other.after < c.before {
					t.Fatalf("%d was accepted after %d", c.token, other.token)
				}
				because = because || other.token == c.highest && other.before < c.after
			}
			if !because {
				t.Fatalf("%d was refused because of %d, which nobody had", c.token, c.highest)
			}
			if c.accepted {
				n, top = n+1, max(top, c.token)
			}
		}
		if highest, err := s.highest("r"); err != nil || highest != top {
			t.Errorf("highest is %d, %v; the highest accepted is %d", highest, err, top)
		}
		if n == len(all) || n < each/2 {
			t.Errorf("%d of %d accepted: this run shows nothing", n, len(all))
		}
	})
}
