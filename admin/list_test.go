package admin_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/steptimeout"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
)

var must = check.Must

func TestListShowsWhatTheNodesDisagreeOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 5)
		c := locktest.NewClient(t, nodes, redlatch.Options{Prefix: "p:", Label: "ours"})
		lease := locktest.MustLock(t, c, "whole", redlatch.LockOptions{})
		synctest.Wait()
		links[0].Take(t, "p:split", "a", time.Minute)
		links[1].Take(t, "p:split", "a", time.Minute)
		links[2].Take(t, "p:split", "b", time.Minute)
		links[3].Take(t, "other prefix", "c", time.Minute)
		links[4].SetDown(errors.New("unplugged"))

		s, err := admin.New(c).List(t.Context())
		must(t, err)
		if len(s.Locks) != 2 || s.Locks[0].Name != "split" || s.Locks[1].Name != "whole" || len(s.Failed) != 1 {
			t.Fatalf("listed are %+v", s)
		}
		split, whole := s.Locks[0], s.Locks[1]
		if split.Held || len(split.Holders) != 2 || split.Holders[0].Nodes != 2 || split.Holders[1].Nodes != 1 {
			t.Errorf("what two share is %+v", split)
		}
		if !whole.Held || whole.Holders[0].Owner != lease.Owner() || whole.Holders[0].Nodes != 4 || whole.Holders[0].Token != lease.Token() || whole.Fence != lease.Token() {
			t.Errorf("what is held is %+v", whole)
		}
		for i, n := range split.Nodes {
			want := []string{`"a"`, `"a"`, `"b"`, "", ""}[i]
			if n.Owner != want || (n.Err != nil) != (i == 4) {
				t.Errorf("node %d says %q, %v, want %q", i, n.Owner, n.Err, want)
			}
		}
	})
}

func TestShowNamesWhoWaitsInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := locktest.NewLinks(t, 3)
		holder := locktest.NewClient(t, nodes, redlatch.Options{Label: "holder"})
		lease := locktest.MustLock(t, holder, "job", redlatch.LockOptions{})
		synctest.Wait() // until the third node has it too
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan struct{}, 2)
		for _, label := range []string{"first", "second"} {
			c := locktest.NewClient(t, nodes, redlatch.Options{Label: label, RetryDelay: 100 * time.Millisecond})
			go func() {
				c.Lock(ctx, "job", nil)
				done <- struct{}{}
			}()
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(300 * time.Millisecond)
		s, err := admin.New(holder).Show(t.Context(), "job")
		must(t, err)
		if !s.Held || s.Holders[0].Nodes != 3 || s.Holders[0].Token != lease.Token() {
			t.Errorf("the holder is %+v", s.Holders)
		}
		if s.Waiting != 2 || len(s.Waiters) != 2 || s.Waiters[0].Nodes == 0 ||
			!strings.HasSuffix(s.Waiters[0].Owner, "/first") || !strings.HasSuffix(s.Waiters[1].Owner, "/second") {
			t.Errorf("waiting are %d: %+v", s.Waiting, s.Waiters)
		}
		cancel()
		<-done
		<-done
	})
}

func TestShowCountsTheNodesThatHaveAMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{Prefix: "p:", CompletedRetention: time.Hour})
		show := func() *admin.LockState {
			t.Helper()
			s, err := admin.New(c).Show(t.Context(), "job")
			must(t, err)
			return s
		}
		if s := show(); len(s.Completed) > 0 || !s.CompletedSince.IsZero() {
			t.Errorf("before the first occurrence it shows %v since %v", s.Completed, s.CompletedSince)
		}
		began := time.Now()
		remember := func(occurrence string, links ...*locktest.Link) {
			for _, l := range links {
				req := node.RecordsRequest{Op: node.OpComplete, Name: "p:job", Occurrence: occurrence, Retention: time.Hour}
				if r, err := l.Records(t.Context(), req); err != nil || r.Status != node.Granted {
					t.Fatal(r.Status, err)
				}
			}
			time.Sleep(time.Minute)
		}
		remember("monday", links[0])
		if s := show(); !s.CompletedSince.IsZero() {
			t.Errorf("one of three nodes remembers, and it shows that since %v", s.CompletedSince)
		}
		remember("tuesday", links...)
		s := show()
		want := []admin.CompletedState{{"tuesday", began.Add(61 * time.Minute), 3}, {"monday", began.Add(time.Hour), 1}}
		if len(s.Completed) != 2 || s.Completed[0] != want[0] || s.Completed[1] != want[1] || !s.CompletedSince.Equal(began.Add(time.Minute)) || s.Held {
			t.Errorf("it shows %v since %v, want %v since a minute after %v", s.Completed, s.CompletedSince, want, began)
		}
		// They do not make a lock.
		if survey, err := admin.New(c).List(t.Context()); err != nil || len(survey.Locks) > 0 {
			t.Errorf("listed are %+v, %v", survey, err)
		}
		// What is older than the retention is forgotten.
		time.Sleep(50 * time.Minute)
		remember("wednesday", links...)
		time.Sleep(30 * time.Minute)
		if s := show(); len(s.Completed) != 1 || !s.CompletedSince.Equal(time.Now().Add(-time.Hour)) {
			t.Errorf("it shows %v since %v, and now is %v", s.Completed, s.CompletedSince, time.Now())
		}
	})
}

// slow is a node that does something before it looks at its locks.
type slow struct {
	*locktest.Link
	before func(context.Context) error
}

func (s *slow) Look(ctx context.Context, name string) (node.Listing, error) {
	if err := s.before(ctx); err != nil {
		return node.Listing{}, err
	}
	return s.Node.Look(ctx, name)
}

func (s *slow) List(ctx context.Context, prefix string, found func(node.Listing)) error {
	if err := s.before(ctx); err != nil {
		return err
	}
	return s.Node.List(ctx, prefix, found)
}

// newSlow returns a client of three slow nodes, the first of which has a lock.
func newSlow(t *testing.T, before ...func(context.Context) error) *redlatch.Client {
	links, nodes := locktest.NewLinks(t, 3)
	for i := range nodes {
		nodes[i] = &slow{links[i], before[i]}
	}
	c := locktest.NewClient(t, nodes, redlatch.Options{})
	locktest.MustLock(t, c, "job", redlatch.LockOptions{TTL: 30 * time.Second})
	synctest.Wait()
	return c
}

func atOnce(context.Context) error { return nil }

// silent does not answer, and ends with its context.
func silent(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

func TestANodeThatHangsDoesNotHoldUpAListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		until := make(chan struct{})
		defer close(until)
		c := newSlow(t, atOnce, func(context.Context) error { <-until; return nil }, atOnce) // it ignores its context
		start := time.Now()
		s, err := admin.New(c).List(t.Context())
		if took := time.Since(start); err != nil || len(s.Locks) != 1 || len(s.Failed) != 1 || took > 6*time.Second {
			t.Errorf("listed after %v are %+v, %v", took, s, err)
		}
	})
}

func TestAListingTakesAsLongAsItGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steps := func(ctx context.Context) error {
			for range 20 {
				select {
				case <-time.After(2 * time.Second):
					steptimeout.Tell(ctx)
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		}
		c := newSlow(t, steps, steps, steps)
		s, err := admin.New(c).List(t.Context())
		if err != nil || len(s.Locks) != 1 || len(s.Failed) != 0 {
			t.Errorf("listed are %+v, %v", s, err)
		}
		start := time.Now()
		if _, err := admin.New(c).List(locktest.Within(t, 3*time.Second)); err == nil || time.Since(start) > 4*time.Second {
			t.Errorf("a listing that was given up ended with %v after %v", err, time.Since(start))
		}
	})
}

// The error of a look without a quorum fits a read: it does not say that something
// was granted, and it has the elapsed time. What was found is returned.
func TestAListingWithoutAQuorumSaysWhatTheNodesDid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := admin.New(newSlow(t, atOnce, silent, silent))
		const did = ": no quorum (2 of 3 needed): memory:1: answered" +
			"; memory:2: node did not answer within its time limit; memory:3: node did not answer within its time limit"
		s, err := a.List(t.Context())
		locktest.WantErr(t, err, redlatch.ErrNoQuorum)
		if want := "redlatch: cannot list the locks" + did; err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		if len(s.Failed) != 2 || !errors.Is(s.Failed[0].Err, redlatch.ErrNodeTimeout) || len(s.Locks) != 1 || s.Locks[0].Held {
			t.Errorf("one node of three lists %+v", s)
		}
		state, err := a.Show(t.Context(), "job")
		locktest.WantErr(t, err, redlatch.ErrNoQuorum)
		if want := `redlatch: cannot inspect "job"` + did; err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		if !errors.Is(state.Nodes[1].Err, redlatch.ErrNodeTimeout) || errors.Is(err, context.DeadlineExceeded) || len(state.Holders) != 1 || state.Held {
			t.Errorf("one node of three shows %+v", state)
		}
		_, err = a.Show(t.Context(), "")
		locktest.WantErr(t, err, redlatch.ErrConfig)
	})
}

// sharers takes a lock for several owners, each with a client of its own.
func sharers(t *testing.T, nodes []redlatch.Node, opts redlatch.LockOptions, labels ...string) []*redlatch.Lease {
	t.Helper()
	var all []*redlatch.Lease
	for _, label := range labels {
		c := locktest.NewClient(t, nodes, redlatch.Options{Label: label})
		all = append(all, locktest.MustLock(t, c, "res", opts))
		time.Sleep(time.Second)
	}
	return all
}

func TestShowNamesEveryReaderAndSlotAndWhatWaitersWaitFor(t *testing.T) {
	for _, opts := range []redlatch.LockOptions{{Shared: true}, {Slots: 3}} {
		synctest.Test(t, func(t *testing.T) {
			links, nodes := locktest.NewLinks(t, 3)
			// On the first node it is a stray that comes first, and on no other.
			stray := node.Request{Op: node.OpAcquire, Name: "res", Value: "stray", TTL: time.Hour, Share: node.Share{Mode: node.Shared}}
			if opts.Slots > 0 {
				stray.Share = node.Share{Mode: node.Slotted, Slots: 3, Slot: 2}
			}
			if r, err := links[0].Do(t.Context(), stray); err != nil || r.Status != node.Granted {
				t.Fatalf("%v, %v", r, err)
			}
			leases := sharers(t, nodes, opts, "one", "two")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan struct{}, 3)
			for i, other := range []redlatch.LockOptions{{}, {Shared: true}, {Slots: 3}} {
				c := locktest.NewClient(t, nodes, redlatch.Options{Label: []string{"writer", "reader", "slot"}[i]})
				go func() {
					c.Lock(ctx, "res", &other)
					done <- struct{}{}
				}()
				time.Sleep(time.Second)
			}
			a := admin.New(locktest.NewClient(t, nodes, redlatch.Options{}))
			s, err := a.Show(t.Context(), "res")
			must(t, err)
			survey, err := a.List(t.Context())
			if err != nil || len(survey.Locks) != 1 {
				t.Fatalf("listed are %+v, %v", survey, err)
			}
			for _, s := range []*admin.LockState{s, &survey.Locks[0]} {
				if !s.Held || len(s.Holders) != 3 || s.Holders[2].Nodes != 1 {
					t.Fatalf("%+v: the holders are %+v", opts, s.Holders)
				}
				for i, lease := range leases {
					h := s.Holders[i]
					if h.Owner != lease.Owner() || h.Token != lease.Token() || h.Nodes != 3 || h.Shared != opts.Shared || h.Slots != opts.Slots ||
						h.Slot != lease.Slot() || h.Holders != 2 || h.Since.IsZero() || h.Left <= 5*time.Second || h.Left > 10*time.Second {
						t.Errorf("%+v: %v is shown as %+v", opts, lease.Owner(), h)
					}
				}
				if n := s.Nodes[0]; len(n.Holders) != 3 || n.Owner != `"stray"` {
					t.Errorf("the first node names %q and has %d holders", n.Owner, len(n.Holders))
				}
			}
			if s.Waiting != 3 || len(s.Waiters) != 3 {
				t.Fatalf("waiting are %d: %+v", s.Waiting, s.Waiters)
			}
			for i, want := range []admin.WaiterState{{}, {Shared: true}, {Slots: 3}} {
				if w := s.Waiters[i]; w.Shared != want.Shared || w.Slots != want.Slots || w.Nodes < 2 {
					t.Errorf("waiter %d is %+v, want %+v", i, w, want)
				}
			}
			cancel()
			for range 3 {
				<-done
			}
		})
	}
}

func TestBreakTakesTheLockFromEveryReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		leases := sharers(t, nodes, redlatch.LockOptions{Shared: true}, "one", "two", "three")
		a := admin.New(locktest.NewClient(t, nodes, redlatch.Options{}))
		s, err := a.Show(t.Context(), "res")
		if err != nil || len(s.Holders) != 3 {
			t.Fatalf("%+v, %v", s, err)
		}
		// One that came after the others were shown is left alone, and so are they.
		late := sharers(t, nodes, redlatch.LockOptions{Shared: true}, "late")
		_, err = a.Break(t.Context(), "res", &admin.BreakOptions{Seen: s.Fence})
		locktest.WantErr(t, err, redlatch.ErrHeld)
		if text := err.Error(); strings.Count(text, "held by") != 1 || !strings.Contains(text, "/one and 3 other readers") || strings.Contains(text, "and by") {
			t.Errorf("the error is %v", err)
		}
		if _, err := a.Break(t.Context(), "res", nil); err != nil {
			t.Fatal(err)
		}
		locktest.WantFree(t, links, "res")
		time.Sleep(10 * time.Second)
		for _, l := range append(leases, late...) {
			locktest.WantErr(t, l.Err(), redlatch.ErrLost)
		}
	})
}

// A holder that is missing on a minority of nodes keeps its place.
func TestHoldersAreShownInTheOrderInWhichTheyCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		leases := sharers(t, nodes, redlatch.LockOptions{Shared: true, NoKeepAlive: true}, "one", "two")
		look, err := links[2].Look(t.Context(), "res")
		if err != nil || len(look.Holders) != 2 {
			t.Fatalf("%+v, %v", look, err)
		}
		first := look.Holders[0]
		r, err := links[2].Do(t.Context(), node.Request{Op: node.OpRelease, Name: "res", Value: first.Value, Fencing: node.Fencing{Token: first.Token}, Share: first.Share})
		if err != nil || r.Status != node.Granted {
			t.Fatalf("%+v, %v", r, err)
		}
		s, err := admin.New(locktest.NewClient(t, nodes, redlatch.Options{})).Show(t.Context(), "res")
		if err != nil || len(s.Holders) != 2 {
			t.Fatalf("%+v, %v", s, err)
		}
		for i, nodes := range []int{2, 3} {
			if h := s.Holders[i]; h.Owner != leases[i].Owner() || h.Nodes != nodes || h.Holders != 2 {
				t.Errorf("holder %d is %+v, want %s on %d nodes", i, h, leases[i].Owner(), nodes)
			}
		}
	})
}
