package admin_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
)

// elsewhere is a node that has another address. With the guard of a single
// server left open, it is off.
type elsewhere struct {
	*locktest.Guarded
	address string
}

func (e elsewhere) String() string    { return e.address }
func (e elsewhere) GuardsAlone() bool { return false }

// frozen is a node that does not answer, and does not refuse either, until it goes on.
type frozen struct {
	*locktest.Guarded
	goOn chan struct{}
}

func (f frozen) Do(ctx context.Context, req node.Request) (node.Reply, error) {
	return thaw(ctx, f, func() (node.Reply, error) { return f.Guarded.Do(ctx, req) })
}

func (f frozen) Mark(ctx context.Context, req node.MarkRequest) (node.MarkReply, error) {
	return thaw(ctx, f, func() (node.MarkReply, error) { return f.Guarded.Mark(ctx, req) })
}

func thaw[R any](ctx context.Context, f frozen, execute func() (R, error)) (reply R, err error) {
	select {
	case <-f.goOn:
		return execute()
	case <-ctx.Done():
		return reply, ctx.Err()
	}
}

// unmarked fails for the nodes of a list that have a marker.
func (w *world) unmarked(list string) {
	w.t.Helper()
	for _, n := range w.nodes(list) {
		if m := n.(*locktest.Guarded).Marker(); m.ID != "" {
			w.t.Errorf("%s is marked %+v", n, m.Guard)
		}
	}
}

func wantText(t testing.TB, err error, parts ...string) {
	t.Helper()
	for _, want := range parts {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

func TestMembershipUnderANameIsTheSameByOtherAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.inService("prod: 1 2 3")
		var others []redlatch.Node
		for i, g := range w.all[:3] {
			others = append(others, elsewhere{g, fmt.Sprint("other ", i)})
		}
		must(t, try(t, locktest.NewClient(t, others, redlatch.Options{Cluster: redlatch.Cluster{Membership: "prod"}})))
		locktest.WantErr(t, try(t, w.client("1 2 3")), redlatch.ErrConfig)
		// A client that lists another number of nodes has other quorums.
		err := try(t, w.client("prod: 1 2"))
		locktest.WantErr(t, err, redlatch.ErrConfig)
		wantText(t, err, "prod (nodes: 3) there, prod (nodes: 2) here; list the same 3 in all clients")
	})
}

// TestMembershipOfOneBesideOneOfThreeIsRefused has a client of one server alone, whose
// guard is off, ask, extend, take up a handle and break where three are in service.
func TestMembershipOfOneBesideOneOfThreeIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		alone := func(any bool) *redlatch.Client {
			opts := redlatch.Options{AnyMembership: any}
			return locktest.NewClient(t, []redlatch.Node{elsewhere{w.all[0], "1"}}, opts)
		}
		early := locktest.MustLock(t, alone(false), "pay", redlatch.LockOptions{NoKeepAlive: true})
		w.unmarked("1")
		must(t, runInit(t, w.client("1 2 3"), nil))
		err := early.Extend(t.Context())
		locktest.WantErr(t, err, redlatch.ErrLost, redlatch.ErrConfig)
		wantText(t, err, "this client lacks 2 3")
		time.Sleep(quarantine)

		err = try(t, alone(false))
		locktest.WantErr(t, err, redlatch.ErrConfig)
		wantText(t, err, "this client lacks 2 3", "use that membership", "redlatch init")
		if errors.Is(err, redlatch.ErrChanging) {
			t.Errorf("%v says that it passes", err)
		}
		held := locktest.MustLock(t, w.client("1 2 3"), "held", redlatch.LockOptions{})
		synctest.Wait() // until all three have it
		_, err = alone(false).Attach(t.Context(), held.Handle())
		locktest.WantErr(t, err, redlatch.ErrConfig)
		_, err = admin.New(alone(false)).Break(t.Context(), "held", nil)
		locktest.WantErr(t, err, redlatch.ErrConfig)
		must(t, held.Extend(t.Context()))

		// Another application may use the server, if it says so.
		l := locktest.MustLock(t, alone(true), "of another application", redlatch.LockOptions{})
		must(t, l.Extend(t.Context()))
		_, err = redlatch.New(w.nodes("1 2 3"), &redlatch.Options{AnyMembership: true})
		locktest.WantErr(t, err, redlatch.ErrConfig)
		wantText(t, err, "AnyMembership", "GuardOff")
	})
}

func TestTTLAboveTheMarkersIsRefusedWithTheGuardOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		must(t, runInit(t, w.client("1 2 3"), nil))
		c := locktest.NewClient(t, w.nodes("1 2 3"), redlatch.Options{Guard: redlatch.GuardOff})
		_, err := c.TryLock(t.Context(), "job", &redlatch.LockOptions{TTL: 31 * time.Second})
		locktest.WantErr(t, err, redlatch.ErrConfig)
		wantText(t, err, "TTL is 31s", "30s")
		must(t, try(t, c)) // though they are quarantined
	})
}

func TestNewMembershipDoesNotBringItselfIntoService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.inService("1 2 3")
		for range 2 {
			locktest.WantErr(t, try(t, w.client("3 4 5")), redlatch.ErrConfig)
			time.Sleep(quarantine)
			w.unmarked("4 5")
			w.all[2].Reboot() // for its own membership it is quarantined then
		}
	})
}

// TestFlushedServersAreNotMarkedAgainstTheWordOfOthers has two of three servers lose
// their data. A client with a shorter MaxTTL must not mark them.
func TestFlushedServersAreNotMarkedAgainstTheWordOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		client := func(maxTTL time.Duration) *redlatch.Client {
			return locktest.NewClient(t, w.nodes("1 2 3"), redlatch.Options{TTL: 2 * time.Second, Cluster: redlatch.Cluster{MaxTTL: maxTTL}})
		}
		must(t, runInit(t, client(20*time.Second), &admin.InitOptions{AssumeFresh: true}))
		w.all[0].Empty()
		w.all[1].Empty()
		locktest.WantErr(t, try(t, client(2*time.Second)), redlatch.ErrConfig)
		w.unmarked("1 2")
		// One that agrees with the third may bring them into service.
		locktest.WantErr(t, try(t, client(0)), redlatch.ErrQuarantine)
		if m := w.all[0].Marker(); m.Guard.MaxTTL != 20*time.Second {
			t.Errorf("marked %+v, want the MaxTTL of the third server", m.Guard)
		}
	})
}

// TestOneWitnessIsNotEnoughToMarkANode changes the membership from 1 2 3 to 1 2 4
// while 3 is away. 3 returns with its old marker, and 2 loses its data. Neither a
// client of the old membership nor an init for it, which 1 does not answer, marks 2 on
// the word of 3.
func TestOneWitnessIsNotEnoughToMarkANode(t *testing.T) {
	for _, init := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.inService("1 2 3")
			old := w.client("1 2 3")
			must(t, try(t, old))
			w.down(true, "3")
			w.changed("1 2 4", "1 2 3")
			w.down(false, "3")
			holder := locktest.MustLock(t, w.client("1 2 4"), "job", redlatch.LockOptions{})
			w.all[1].Empty()
			if init {
				w.down(true, "1")
				wantText(t, runInit(t, w.client("1 2 3"), nil), "1 of 3 nodes confirm this membership, where 2 are needed")
			}
			for range 2 * quarantine / time.Second {
				if try(t, old) == nil {
					exclusion.Never(t, "two holders: %v of the new membership is left", holder.Remaining())
				}
				if g := w.all[1].Marker().Guard; g.Nodes != "" && g.Nodes != "1 2 4" {
					exclusion.Never(t, "on the word of one node, it was marked %+v", g)
				}
				time.Sleep(time.Second)
			}
		})
	}
}

// TestServerThatMissedAChangeIsNoWitness has 4 come back as it was before a change there
// and back. It is marked again, and counts for the next init.
func TestServerThatMissedAChangeIsNoWitness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.inService("1 2 3 4 5")
		before := w.all[3].Save()
		w.changed("1 2 3", "1 2 3 4 5")
		w.changed("1 2 3 4 5", "1 2 3")
		w.all[3].Load(before)
		w.down(true, "2 5")
		w.all[2].Empty()
		wantText(t, runInit(t, w.client("1 2 3 4 5"), nil), "1 of 5 nodes confirm")
	})
}

// TestServerThatLostItsDataComesBackHoweverManyNoticeIt has many clients notice at the
// same time that a server is empty. Each marks it, and some mark it again: that must
// end at once, since each marking begins a quarantine.
func TestServerThatLostItsDataComesBackHoweverManyNoticeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.inService("1 2 3")
		var all sync.WaitGroup
		for i := range 24 {
			c := w.client("1 2 3")
			all.Go(func() {
				for range 2 * quarantine / time.Second {
					if l, err := c.TryLock(t.Context(), fmt.Sprint("name ", i), nil); err == nil {
						l.Release(t.Context())
					}
					time.Sleep(time.Second)
				}
			})
		}
		time.Sleep(quarantine / 2)
		w.all[1].Empty()
		all.Wait()
		if m := w.all[1].Marker(); m.ID == "" || m.TrustedFrom.After(time.Now()) {
			t.Errorf("it is marked %+v", m)
		}
	})
}

// TestClientThatSawServersInServiceDoesNotTakeThemForNew leaves the client itself as
// the only witness of what the servers had.
func TestClientThatSawServersInServiceDoesNotTakeThemForNew(t *testing.T) {
	for how, see := range map[string]func(t *testing.T, c *redlatch.Client, handle string) error{
		"by taking a lock": func(t *testing.T, c *redlatch.Client, _ string) error {
			_, err := c.TryLock(t.Context(), "other", &redlatch.LockOptions{NoKeepAlive: true})
			return err
		},
		"by being refused one": func(t *testing.T, c *redlatch.Client, _ string) error {
			locktest.WantErr(t, try(t, c), redlatch.ErrHeld)
			return nil
		},
		"by taking up a handle": func(t *testing.T, c *redlatch.Client, handle string) error {
			_, err := c.Attach(t.Context(), handle)
			return err
		},
		"by looking": func(t *testing.T, c *redlatch.Client, _ string) error {
			return runInit(t, c, nil)
		},
	} {
		locktest.Run(t, how, func(t *testing.T) {
			w := newWorld(t)
			w.inService("1 2 3")
			l := locktest.MustLock(t, w.client("1 2 3"), "job", redlatch.LockOptions{NoKeepAlive: true})
			c := w.client("1 2 3")
			must(t, see(t, c, l.Handle()))
			for _, g := range w.all[:3] {
				g.Empty()
			}
			locktest.WantErr(t, runInit(t, c, &admin.InitOptions{AssumeFresh: true}), admin.ErrNotFresh)
		})
	}
}

func TestNewServersSayForHowLongAndWhatToDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.client("1 2 3")
		_, err := c.TryLock(t.Context(), "job", nil)
		locktest.WantErr(t, err, redlatch.ErrNoQuorum, redlatch.ErrQuarantine)
		wantText(t, err, "new, or lost its data", "quarantined for another 32s", "wait until quarantine ends, as redlatch init does", "may still be held",
			"redlatch init --assume-fresh")
		// After that report they can still be declared new: none has been in service.
		must(t, runInit(t, c, &admin.InitOptions{AssumeFresh: true}))
		must(t, try(t, c))
		w.all[1].Empty()
		locktest.WantErr(t, runInit(t, c, &admin.InitOptions{AssumeFresh: true}), admin.ErrNotFresh)
	})
}

// TestFrozenServerDoesNotHoldUpAssumingFresh has one of three servers in service not
// answer a client that may assume that they are new.
func TestFrozenServerDoesNotHoldUpAssumingFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.inService("1 2 3")
		third := frozen{w.all[2], make(chan struct{})}
		defer close(third.goOn)
		nodes := append(w.nodes("1 2"), third)
		c := locktest.NewClient(t, nodes, redlatch.Options{AssumeFresh: true})
		_, err := c.Lock(t.Context(), "job", &redlatch.LockOptions{Wait: 20 * time.Second})
		must(t, err)
	})
}
