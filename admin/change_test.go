package admin_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
)

// world has servers with the names 1 to 7, and memberships of them.
type world struct {
	t   *testing.T
	all []*locktest.Guarded
}

func newWorld(t *testing.T) *world {
	all, _ := locktest.NewGuarded(7)
	return &world{t, all}
}

// nodes returns those of a list such as "1 2 3", or "prod: 1 2 3" if the membership
// has a name.
func (w *world) nodes(list string) (nodes []redlatch.Node) {
	if _, rest, named := strings.Cut(list, ": "); named {
		list = rest
	}
	for name := range strings.FieldsSeq(list) {
		nodes = append(nodes, w.all[name[0]-'1'])
	}
	return nodes
}

// client returns one of a list.
func (w *world) client(list string) *redlatch.Client {
	w.t.Helper()
	var opts redlatch.Options
	if name, _, named := strings.Cut(list, ": "); named {
		opts.Membership = name
	}
	return locktest.NewClient(w.t, w.nodes(list), opts)
}

// runInit runs init for a client.
func runInit(t testing.TB, c *redlatch.Client, opts *admin.InitOptions) error {
	_, err := admin.New(c).Init(t.Context(), opts)
	return err
}

// change runs init for a list, without waiting.
func (w *world) change(list, former string) error {
	w.t.Helper()
	return runInit(w.t, w.client(list), &admin.InitOptions{Former: w.nodes(former)})
}

// inService puts a list of servers into service.
func (w *world) inService(list string) {
	w.t.Helper()
	must(w.t, runInit(w.t, w.client(list), &admin.InitOptions{AssumeFresh: true}))
}

// changed changes the membership by the book.
func (w *world) changed(list, former string) {
	w.t.Helper()
	must(w.t, runInit(w.t, w.client(list), &admin.InitOptions{Former: w.nodes(former), Wait: true}))
}

func (w *world) down(down bool, list string) {
	for _, n := range w.nodes(list) {
		n.(*locktest.Guarded).SetDown(down)
	}
}

// halfWay begins a change in which the nodes of a list fall silent when they get the
// mark.
func (w *world) halfWay(list, former string, at node.Mark, silent string) {
	w.t.Helper()
	for _, n := range w.nodes(silent) {
		n.(*locktest.Guarded).OnRequest(func(req any) {
			if isMark(req, at) {
				w.down(true, silent)
			}
		})
	}
	if err := w.change(list, former); err == nil {
		w.t.Error("the change was not interrupted")
	}
	for _, n := range w.nodes(silent) {
		n.(*locktest.Guarded).OnRequest(nil)
	}
	w.down(false, silent)
}

// isMark reports whether a request is such a MarkRequest.
func isMark(req any, what node.Mark) bool {
	r, ok := req.(node.MarkRequest)
	return ok && r.Mark == what
}

// try asks for the lock once.
func try(t testing.TB, c *redlatch.Client) error {
	l, err := c.TryLock(t.Context(), "job", nil)
	if err == nil {
		l.Release(t.Context())
	}
	return err
}

// keepsOut asks for the lock each second, for three quarantines. It fails if it is
// granted while the lease of another membership is valid.
func (w *world) keepsOut(holder *redlatch.Lease, ask func() error) {
	w.t.Helper()
	for range 3 * quarantine / time.Second {
		if ask() == nil {
			if left := holder.Remaining(); left > 0 && holder.Context().Err() == nil {
				exclusion.Never(w.t, "two holders: the first has %v left", left)
			}
			return
		}
		time.Sleep(time.Second)
	}
}

// holdBoth has one client with a lock that it extends, runs meanwhile, and then has
// another client ask for the lock.
func (w *world) holdBoth(old, list string, meanwhile func()) {
	w.t.Helper()
	holder := locktest.MustLock(w.t, w.client(old), "job", redlatch.LockOptions{})
	meanwhile()
	other := w.client(list)
	w.keepsOut(holder, func() error { return try(w.t, other) })
	holder.Release(w.t.Context())
}

// TestChangeThatLeavesTheFormerMembershipInServiceIsRefused has wrong lists in
// --former, while a lock is held.
func TestChangeThatLeavesTheFormerMembershipInServiceIsRefused(t *testing.T) {
	silent := func(list string) func(w *world) {
		return func(w *world) {
			w.down(true, list)
			time.AfterFunc(time.Second, func() { w.down(false, list) })
		}
	}
	for what, c := range map[string]struct {
		inService    string
		meanwhile    func(w *world)
		list, former string
		barred       bool // it is found out after the bar
	}{
		"the new list in both flags": {inService: "1 2 3", list: "1 4 5", former: "1 4 5"},
		"a new server alone":         {inService: "1 2 3", list: "1 4 5", former: "4"},
		"a membership with a name":   {inService: "prod: 1 2 3", list: "next: 1 4 5", former: "1 4 5"},
		"members that stay":          {inService: "1 2 3", list: "1 2 4", former: "4"},
		"part of it":                 {inService: "1 2 3 4 5", list: "1 2 6", former: "1 2"},
		"part of one with a name":    {inService: "prod: 1 2 3 4 5", list: "next: 1 2 6", former: "1 2"},
		"a server that an interrupted change barred": {inService: "1 2 3", list: "1 4 5", former: "1 4 5", meanwhile: func(w *world) {
			w.all[0].Mark(t.Context(), node.MarkRequest{Mark: node.MarkBar, Guard: &node.Guard{Membership: "0123456789abcdef", Nodes: "1 6 7", Generation: 2}})
		}},
		"one left out and two silent":           {inService: "1 2 3 4 5", list: "1 2 6", former: "1 2 3 4 6", meanwhile: silent("3 4")},
		"a removed server in place of a member": {inService: "1 2 4 > 1 2 3", list: "1 5 6", former: "1 4 5"},
		"servers without a marker beside members that fall silent": {inService: "1 2 3", list: "1 4 5", former: "1 2 3 6 7", barred: true, meanwhile: func(w *world) {
			for _, g := range w.all[1:3] {
				g.OnRequest(func(req any) {
					if isMark(req, node.MarkBar) {
						silent(g.Name)(w)
					}
				})
			}
		}},
		"a member that a client of a former list has marked": {inService: "3 6 > 1 2 3", list: "1 3 4", former: "1 6", meanwhile: func(w *world) {
			w.all[2].Empty()
			w.all[5].Empty()
			try(w.t, w.client("3 6"))
			synctest.Wait()
		}},
		"another membership, whose only server falls silent": {inService: "4", list: "1 2 5", former: "1 2 3 4", barred: true, meanwhile: func(w *world) {
			w.inService("1 2 3")
			w.all[3].OnRequest(func(req any) {
				if isMark(req, node.MarkBar) {
					silent("4")(w)
				}
			})
		}},
	} {
		locktest.Run(t, what, func(t *testing.T) {
			w := newWorld(t)
			first, second, changed := strings.Cut(c.inService, " > ")
			w.inService(first)
			if changed {
				w.changed(second, first)
				first = second
			}
			w.holdBoth(first, c.list, func() {
				if c.meanwhile != nil {
					c.meanwhile(w)
				}
				before := w.all[0].Marker()
				err := w.change(c.list, c.former)
				if err == nil {
					t.Error("the change was made")
				}
				if after := w.all[0].Marker(); !c.barred && after != before {
					t.Errorf("the marker is %+v, was %+v; %v", after, before, err)
				}
				time.Sleep(2 * time.Second)
			})
		})
	}
}

// TestChangeThatLeavesNoOtherMembershipInServiceIsMade has changes that are run again,
// taken back, and made after servers missed others.
func TestChangeThatLeavesNoOtherMembershipInServiceIsMade(t *testing.T) {
	missed := func(w *world, list, former, silent string) {
		w.down(true, silent)
		w.changed(list, former)
		w.down(false, silent)
	}
	for what, history := range map[string]func(w *world) error{
		"again, for one that missed it": func(w *world) error {
			w.inService("1 2 3")
			missed(w, "1 4 5", "1 2 3", "3")
			return w.change("1 4 5", "1 2 3")
		},
		"again, for one that missed it, with names": func(w *world) error {
			w.inService("prod: 1 2 3")
			missed(w, "next: 1 4 5", "1 2 3", "3")
			return w.change("next: 1 4 5", "1 2 3")
		},
		"for one that missed two": func(w *world) error {
			w.inService("1 2 3")
			missed(w, "1 2 4", "1 2 3", "3")
			missed(w, "1 2 5", "1 2 4", "3")
			return w.change("1 2 5", "1 2 3")
		},
		"a removed server for another membership": func(w *world) error {
			w.inService("1 2 3")
			w.changed("1 2 4", "1 2 3")
			return w.change("3 6 7", "3")
		},
		"the same, again": func(w *world) error {
			w.inService("1 2 3")
			w.changed("1 2 4", "1 2 3")
			w.halfWay("3 6 7", "3", node.MarkReplace, "6")
			return w.change("3 6 7", "3")
		},
		"taken back": func(w *world) error {
			w.inService("1 2 3")
			w.halfWay("1 4 5", "1 2 3", node.MarkBar, "2 3")
			return w.change("1 2 3", "1 4 5")
		},
		"taken back, with names": func(w *world) error {
			w.inService("prod: 1 2 3")
			w.halfWay("next: 1 4 5", "1 2 3", node.MarkBar, "2 3")
			return w.change("prod: 1 2 3", "1 4 5")
		},
		"finished, with names": func(w *world) error {
			w.inService("prod: 1 2 3")
			w.halfWay("next: 1 4 5", "1 2 3", node.MarkReplace, "4 5")
			return w.change("next: 1 4 5", "1 2 3")
		},
		"from a server without a marker": func(w *world) error { return w.change("1 2 3", "1") },
		"while a minority is empty": func(w *world) error {
			w.inService("1 2 3")
			w.all[1].Empty()
			w.down(true, "3")
			return w.change("1 4 5", "1 2 3")
		},
	} {
		locktest.Run(t, what, func(t *testing.T) { must(t, history(newWorld(t))) })
	}
}

// TestFormerMembershipDoesNotComeBack restarts servers of a former membership empty,
// while a lock of the new one is held. A process with the old list, that has seen the
// change or starts now, asks for it.
func TestFormerMembershipDoesNotComeBack(t *testing.T) {
	for what, c := range map[string]struct {
		old, new, empty string
		starts          bool // the processes with the old list are short-lived
		early           bool // they ask while one server is barred, and not again
	}{
		"one server, seen":             {"2", "1 2 3 4 5", "2", false, false},
		"one server, not seen":         {"2", "1 2 3 4 5", "2", true, false},
		"all three, seen":              {"1 2 3", "3 4 5", "1 2 3", false, false},
		"the others first, seen":       {"1 2 3", "1 4 5", "2 3 1", false, false},
		"a minority, not seen":         {"1 2 3", "1 2 4", "3 2", true, false},
		"with a name, seen":            {"old: 1 2 3", "new: 3 4 5", "1 2 3", false, false},
		"one with a name, starts":      {"old: 2", "new: 1 2 3", "2", true, false},
		"while the others serve, seen": {"1 2 3", "3 4 5", "1 2 3", false, true},
	} {
		locktest.Run(t, what, func(t *testing.T) {
			w := newWorld(t)
			w.inService(c.old)
			old := w.client(c.old)
			if c.early {
				w.halfWay(c.new, c.old, node.MarkBar, "2 3")
				must(t, try(t, old))
				synctest.Wait()
			}
			w.changed(c.new, c.old)
			holder := locktest.MustLock(t, w.client(c.new), "job", redlatch.LockOptions{})
			if !c.early && try(t, old) == nil {
				exclusion.Never(t, "the change let a client of the former membership in")
			}
			for _, n := range w.nodes(c.empty) {
				n.(*locktest.Guarded).Empty()
				time.Sleep(20 * time.Millisecond)
			}
			if what == "all three, seen" {
				wantText(t, runInit(t, old, nil), "0 of 3 nodes confirm this membership, where 2 are needed", "see redlatch doctor; 3: ")
			}
			w.keepsOut(holder, func() error {
				if c.starts {
					old.Close()
					old = w.client(c.old)
				}
				return try(t, old)
			})
			must(t, holder.Release(t.Context()))
		})
	}
}

// TestProcessThatSawAnotherMembershipMarksItsOwnWhenThatIsInService has all servers of
// a membership lose their data. A process that had its list before the change to it
// began, or has seen a bar, and one that has seen a change away and back, bring it into
// service again.
func TestProcessThatSawAnotherMembershipMarksItsOwnWhenThatIsInService(t *testing.T) {
	for what, c := range map[string]struct {
		first, second, then string
		barred              bool // it is refused during the change
	}{
		"the list came too early":     {"1 2 3", "1 4 5", "", false},
		"there and back":              {"1 4 5", "1 2 3", "1 4 5", false},
		"the list came at the bar":    {"1 2 3", "1 4 5", "", true},
		"barred, and taken back soon": {"1 4 5", "1 2 3", "1 4 5", true},
	} {
		locktest.Run(t, what, func(t *testing.T) {
			w := newWorld(t)
			w.inService(c.first)
			client := w.client("1 4 5")
			switch {
			case c.barred:
				w.halfWay(c.second, c.first, node.MarkReplace, "1 2 3 4 5")
			case c.then != "":
				w.changed(c.second, c.first)
			}
			if try(t, client) == nil {
				t.Fatal("another membership is in service")
			}
			if c.then == "" {
				w.changed(c.second, c.first)
			} else {
				w.changed(c.then, c.second)
			}
			locktest.MustLock(t, client, "job", redlatch.LockOptions{}).Release(t.Context()) // it waits for the quarantine
			synctest.Wait()
			for _, n := range w.all {
				n.Empty()
			}
			locktest.MustLock(t, client, "job", redlatch.LockOptions{}).Release(t.Context())
		})
	}
}
