package admin_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
)

// TestMembershipChangeThatStopsHalfWayLetsNobodyIn: the old membership stays in
// service until the change is completed, even if the server that is barred already
// restarts or loses its data.
func TestMembershipChangeThatStopsHalfWayLetsNobodyIn(t *testing.T) {
	for what, accident := range map[string]func(barred *locktest.Guarded){
		"and nothing else": func(*locktest.Guarded) {},
		"and the barred server restarts with its data": (*locktest.Guarded).Reboot,
		"and the barred server forgets everything":     (*locktest.Guarded).Empty,
	} {
		locktest.Run(t, what, func(t *testing.T) {
			w := newWorld(t)
			w.inService("abc: 1 2 3")
			old := w.client("abc: 1 2 3")
			w.halfWay("abd: 1 2 4", "1 2 3", node.MarkBar, "2 3")
			if m := w.all[0].Marker(); m.Guard.Membership != node.BarredMembership {
				t.Fatalf("the first server is marked %+v", m.Guard)
			}
			accident(w.all[0])
			held := locktest.MustLock(t, old, "job", redlatch.LockOptions{})
			changed := w.client("abd: 1 2 4")
			w.keepsOut(held, func() error { return try(t, changed) })
			must(t, held.Err())
			w.unmarked("4")

			// A second run finishes it.
			must(t, w.change("abd: 1 2 4", "1 2 3"))
			w.handsOver(old, held, w.client("abd: 1 2 4"))
		})
	}
}

// handsOver fails unless the lease of one membership is over before the other grants,
// the other does grant in the end, and the first grants nothing more.
func (w *world) handsOver(from *redlatch.Client, held *redlatch.Lease, to *redlatch.Client) {
	w.t.Helper()
	next := locktest.MustLock(w.t, to, held.Name(), redlatch.LockOptions{Wait: 2 * quarantine})
	if left := held.Remaining(); left > 0 || next.Token() <= held.Token() {
		exclusion.Never(w.t, "token %d came after %d, which has %v left", next.Token(), held.Token(), left)
	}
	locktest.WantErr(w.t, held.Err(), redlatch.ErrLost)
	locktest.WantErr(w.t, try(w.t, from), redlatch.ErrConfig)
	next.Release(w.t.Context())
}

func TestMembershipChangeThatStoppedHalfWayCanBeTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.inService("abc: 1 2 3")
		old := w.client("abc: 1 2 3")
		w.halfWay("abd: 1 2 4", "1 2 3", node.MarkBar, "2 3")
		w.holdBoth("abc: 1 2 3", "abc: 1 2 3", func() {
			must(t, w.change("abc: 1 2 3", "1 2 4"))
			locktest.WantErr(t, try(t, w.client("abd: 1 2 4")), redlatch.ErrConfig)
		})
		locktest.MustLock(t, old, "job", redlatch.LockOptions{})
	})
}

// TestMembershipChangeThatStopsAfterTheOldOneIsBarredCanBeFinished cuts the operator
// off when the whole old membership is barred and not every node is marked.
func TestMembershipChangeThatStopsAfterTheOldOneIsBarredCanBeFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.inService("1 2 3")
		old := w.client("1 2 3")
		held := locktest.MustLock(t, old, "job", redlatch.LockOptions{})
		w.halfWay("1 2 4", "1 2 3", node.MarkReplace, "2 4")
		must(t, w.change("1 2 4", "1 2 3"))
		w.handsOver(old, held, w.client("1 2 4"))
	})
}

func TestMembershipChangeThatStoppedHalfWaySaysWhatToDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.inService("abc: 1 2 3")
		for _, g := range w.all[1:3] {
			g.OnRequest(func(req any) { g.SetDown(isMark(req, node.MarkBar)) })
		}
		states, err := admin.New(w.client("abd: 1 2 4")).Init(t.Context(), &admin.InitOptions{Former: w.nodes("1 2 3")})
		locktest.WantErr(t, err, redlatch.ErrNoQuorum)
		wantText(t, err, "2 nodes of the former membership do not answer", "until the change is finished: 1;", "run the same change again")
		if s := states[0]; s.Reason != node.ReasonBarred || s.Trusted || s.Left != 0 {
			t.Errorf("the barred node is shown as %+v", s)
		}
		err = try(t, w.client("abd: 1 2 4"))
		locktest.WantErr(t, err, redlatch.ErrConfig, redlatch.ErrChanging)
		wantText(t, err, "1 is barred", `the membership to "abd (nodes: 3)" is not finished`, "run the same change again")
		before := w.all[0].Marker()
		for _, opts := range []admin.InitOptions{{}, {AssumeFresh: true}} { // which do not unbar it
			locktest.WantErr(t, runInit(t, w.client("abc: 1 2 3"), &opts), redlatch.ErrConfig)
			if m := w.all[0].Marker(); m != before {
				t.Errorf("%+v: marked %+v", opts, m)
			}
		}
	})
}

// TestMembershipChangeThatCannotBeMadeWritesNothing: the old membership goes on.
func TestMembershipChangeThatCannotBeMadeWritesNothing(t *testing.T) {
	for what, c := range map[string]struct{ list, former, away string }{
		"the old one cannot be barred": {"3 4 5", "6 7 3", "6 7"},
		"a new node is away":           {"1 2 4", "1 2 3", "4"},
	} {
		locktest.Run(t, what, func(t *testing.T) {
			w := newWorld(t)
			w.inService("1 2 3")
			w.down(true, c.away)
			before := w.all[2].Marker()
			err := w.change(c.list, c.former)
			locktest.WantErr(t, err, redlatch.ErrNoQuorum)
			wantText(t, err, "nothing was changed")
			w.unmarked("4 5")
			if m := w.all[2].Marker(); m != before {
				t.Errorf("marked %+v", m)
			}
			must(t, try(t, w.client("1 2 3")))
		})
	}
}

// TestQuarantineOfAMembershipChangeBeginsWhenTheOldOneIsBarred has the old membership
// grant while its nodes are barred slowly. Each request is carried out for half a
// minute at most.
func TestQuarantineOfAMembershipChangeBeginsWhenTheOldOneIsBarred(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.inService("1 2 3")
		old := w.client("1 2 3")
		for _, g := range w.all {
			g.OnRequest(func(asked any) {
				req, ok := asked.(node.MarkRequest)
				if !ok || req.Mark == node.MarkRead {
					return
				}
				if left := time.Until(req.Until); left <= 0 || left > 30*time.Second {
					t.Errorf("marking %v of %s is carried out for %v", req.Mark, g, left)
				}
				if req.Mark == node.MarkBar {
					time.Sleep(10 * time.Second)
				}
			})
		}
		done := make(chan error, 1)
		go func() { done <- w.change("3 4 5", "1 2 3") }()
		var last *redlatch.Lease
		for i := range 1000 {
			l, err := old.TryLock(t.Context(), fmt.Sprint("job ", i), &redlatch.LockOptions{TTL: 30 * time.Second, NoKeepAlive: true})
			if err != nil {
				break
			}
			last = l
			time.Sleep(100 * time.Millisecond)
		}
		if last == nil || last.Remaining() < 25*time.Second {
			t.Fatalf("the old membership granted nothing just before it was barred: %v", last)
		}
		for changed := w.client("3 4 5"); last.Remaining() > 0; time.Sleep(time.Second) {
			if l, err := changed.TryLock(t.Context(), last.Name(), nil); err == nil {
				exclusion.Never(t, "two holders: the first for %v yet, the second for %v", last.Remaining(), l.Remaining())
			}
		}
		must(t, <-done)
	})
}

func TestMembershipChangeToAShorterMaxTTLWaitsForTheLongerOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, maxTTL := range []time.Duration{0, 20 * time.Second} { // left open, and set shorter
			w := newWorld(t)
			long := locktest.NewClient(t, w.nodes("1 2 3"), redlatch.Options{Cluster: redlatch.Cluster{MaxTTL: time.Minute}})
			must(t, runInit(t, long, &admin.InitOptions{AssumeFresh: true}))
			changed := locktest.NewClient(t, w.nodes("3 4 5"), redlatch.Options{Cluster: redlatch.Cluster{MaxTTL: maxTTL}})
			states, err := admin.New(changed).Init(t.Context(), &admin.InitOptions{Former: w.nodes("1 2 3")})
			must(t, err)
			for _, s := range states { // also those that were in neither membership
				if s.Left < time.Minute || maxTTL == 0 && s.Marked.MaxTTL != time.Minute {
					t.Errorf("%s is quarantined for %v, and allows %v, where locks of a minute may be held", s.Node, s.Left, s.Marked.MaxTTL)
				}
			}
		}
	})
}

// TestSameChangeAgainMarksOnlyWhatIsMissing runs a membership change twice. The second
// run begins no quarantine on nodes that the first one marked.
func TestSameChangeAgainMarksOnlyWhatIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.inService("1 2 3")
		changed := w.client("1 2 4")
		change := func() []admin.NodeState {
			t.Helper()
			states, err := admin.New(changed).Init(t.Context(), &admin.InitOptions{Former: w.nodes("1 2 3")})
			must(t, err)
			return states
		}
		for _, s := range change() {
			if s.Trusted || s.Marked.Generation != 2 {
				t.Errorf("%+v after the first change", s)
			}
		}
		time.Sleep(quarantine + time.Second)
		w.all[3].Empty()
		for _, s := range change() {
			if missing := s.Node == "4"; s.Trusted == missing || s.Marked.Generation != 2 {
				t.Errorf("%s is trusted %v, %+v, after the same change again", s.Node, s.Trusted, s.Marked)
			}
		}
	})
}

// TestChangeOfMembershipIsNotHeldUpByAFrozenNode has a node of the former membership
// not answer, and not refuse either.
func TestChangeOfMembershipIsNotHeldUpByAFrozenNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.inService("1 2 3")
		third := frozen{w.all[2], make(chan struct{})}
		defer close(third.goOn)
		former := append(w.nodes("1 2"), third)
		start := time.Now()
		must(t, runInit(t, w.client("1 2 4"), &admin.InitOptions{Former: former}))
		locktest.WantTook(t, start, 0, 10*time.Second)
	})
}

// TestClockOfOneNodeDoesNotMakeAllSitOut changes the membership when one node was
// marked while its clock was a day ahead.
func TestClockOfOneNodeDoesNotMakeAllSitOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.all[2].SetBack(-24 * time.Hour)
		w.inService("1 2 3")
		w.all[2].SetBack(24 * time.Hour)
		err := w.change("1 2 4", "1 2 3")
		locktest.WantErr(t, err, redlatch.ErrConfig)
		wantText(t, err, "3 ", "DEL redlatch:1:marker")
		time.Sleep(quarantine)
		must(t, try(t, w.client("1 2 3")))
		w.all[2].Empty()
		must(t, w.change("1 2 4", "1 2 3"))
		time.Sleep(quarantine)
		must(t, try(t, w.client("1 2 4")))
	})
}
