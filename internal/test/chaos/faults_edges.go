//go:build unix

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
)

// edgeFaults are what operators do, and what goes wrong around it. None breaks
// an assumption of docs/guarantees.md. One is under way at a time.
var edgeFaults = []Family{
	{Name: "membership", About: "put another server in the place of one, by the book; the one that was removed comes back empty, and a client of the former membership comes back", kinds: edgy, edge: changeMembers},
	{Name: "break", About: "break a lock", kinds: edgy, edge: breakLock},
	{Name: "set-back", About: "set the clocks of all servers back by an hour, and break the locks that dead clients left", clock: true, kinds: edgy, edge: setBack},
}

// edgy are the kinds of servers that edges are staged on.
var edgy = []ServerKind{Redis, Postgres}

// operatorLimit is how long an operator tries.
const operatorLimit = 2 * time.Minute

// operate calls do with a client of the present membership until it succeeds.
func (w *nemesis) operate(do func(context.Context, *redlatch.Client) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), operatorLimit)
	defer cancel()
	locks, _, err := w.in.open(w.bounds, w.in.nodes)
	if err != nil {
		return err
	}
	defer locks.Close()
	for {
		err := do(ctx, locks)
		if err == nil || !wait(ctx, 50*time.Millisecond) {
			return err
		}
	}
}

// breakLock breaks a lock that is held. The operator does not know whether a break
// that failed has taken the lock away: the next one is another break.
func breakLock(w *nemesis, rng *rand.Rand) strike {
	return strike{detail: "a lock is broken", apply: func(f *Fault) error {
		if w.in.nodes[0].kind != Redis {
			defer time.Sleep(w.bounds.quarantine())
		}
		return w.operate(func(ctx context.Context, locks *redlatch.Client) error {
			all, err := admin.New(locks).List(ctx)
			if err != nil {
				return err
			}
			held := slices.DeleteFunc(all.Locks, func(s admin.LockState) bool { return !s.Held })
			if len(held) == 0 {
				return nil
			}
			return f.breaks(ctx, locks, held[rng.IntN(len(held))])
		})
	}}
}

// breaks breaks a lock as it was seen, and records it. Somebody else may have it by
// now, and keeps it then.
func (f *Fault) breaks(ctx context.Context, locks *redlatch.Client, s admin.LockState) error {
	b := Broken{Name: s.Name, Token: uint64(s.Seen()) + 1, Span: Span{From: now()}}
	_, err := admin.New(locks).Break(ctx, s.Name, &admin.BreakOptions{Seen: s.Seen()})
	b.To, b.Sure = now(), err == nil
	f.Broken = append(f.Broken, b)
	if errors.Is(err, redlatch.ErrHeld) {
		return nil
	}
	return err
}

// setBack sets all clocks back, and leaves them. The locks of clients that died
// before last for an hour more: an operator breaks those, as docs/operations.md
// says. They are known by the time that they have left. A database is quarantined, and
// has time to work in before the next one.
func setBack(w *nemesis, rng *rand.Rand) strike {
	return strike{detail: "all clocks are set back by an hour", apply: func(f *Fault) error {
		for _, n := range w.in.nodes {
			n.clock.Set(n.clock.Off()-time.Hour, 0)
		}
		// Whoever is alive extends its lock within this time.
		time.Sleep(w.bounds.MaxTTL)
		return w.operate(func(ctx context.Context, locks *redlatch.Client) error {
			all, err := admin.New(locks).List(ctx)
			if err != nil {
				return err
			}
			for _, s := range all.Locks {
				if !slices.ContainsFunc(s.Holders, func(h redlatch.Holder) bool { return h.Left > w.bounds.MaxTTL }) {
					continue
				}
				if err := f.breaks(ctx, locks, s); err != nil {
					return err
				}
			}
			return nil
		})
	}}
}

// changeMembers replaces one server of the membership. Clients go over to the new
// list one after the other. The server that was removed comes back empty. Then
// a client comes back with the old list, for long enough to outlive a quarantine.
func changeMembers(w *nemesis, rng *rand.Rand) strike {
	place := rng.IntN(len(w.in.nodes))
	return strike{detail: fmt.Sprintf("the server in place %d is replaced", place+1), apply: func(*Fault) error {
		former := w.in.nodes
		if r := w.in.removed; r != nil {
			r.current().Stop() // for good: the book says so
		}
		added, err := w.in.add(former[place].kind)
		if err != nil {
			return err
		}
		next := slices.Clone(former)
		next[place] = added
		old := w.in.generation
		w.in.generation++
		if err := w.in.change(w.bounds, former, next); err != nil {
			return err
		}
		w.mu.Lock()
		w.in.nodes, w.in.removed, w.nodes = next, former[place], next
		w.mu.Unlock()
		empty := former[place].newServer()
		if err := again(empty.Start); err != nil {
			return err
		}
		gone := former[place].current()
		former[place].become(empty)
		gone.Stop()
		for _, i := range rng.Perm(len(w.members)) {
			if err := w.restart(w.members[i], next, w.in.generation); err != nil {
				return err
			}
		}
		late := w.members[rng.IntN(len(w.members))]
		if err := w.restart(late, former, old); err != nil {
			return err
		}
		time.Sleep(w.bounds.quarantine() + w.bounds.MaxTTL/2)
		return w.restart(late, next, w.in.generation)
	}}
}

// restart starts a client again, with a list of nodes. It waits for a client that
// has a fault.
func (w *nemesis) restart(m *member, list []*node, generation int) error {
	for {
		w.mu.Lock()
		taken := !m.struck
		m.struck = true
		w.mu.Unlock()
		if taken {
			break
		}
		time.Sleep(10 * time.Millisecond) // a fault has no event for its end
	}
	m.kill()
	m.config.Nodes, m.config.Membership = addresses(list, m.number-1), membership(generation)
	err := m.start()
	w.mu.Lock()
	defer w.mu.Unlock()
	m.struck = false
	return err
}

// change takes the servers from one membership to the next, as redlatch init
// --former does, and waits until they are trusted.
func (c *cluster) change(b bounds, former, next []*node) error {
	ctx, cancel := context.WithTimeout(context.Background(), operatorLimit)
	defer cancel()
	locks, nodes, err := c.open(b, next)
	if err != nil {
		return err
	}
	defer locks.Close()
	var leaving []redlatch.Node
	for i, n := range former {
		if next[i] == n {
			leaving = append(leaving, nodes[i])
			continue
		}
		old, err := n.open(n.links[0].Addr())
		if err != nil {
			return err
		}
		defer old.Close()
		leaving = append(leaving, old)
	}
	for {
		_, err := admin.New(locks).Init(ctx, &admin.InitOptions{Former: leaving, Wait: true})
		if err == nil || errors.Is(err, redlatch.ErrConfig) || !wait(ctx, 100*time.Millisecond) {
			return err
		}
	}
}
