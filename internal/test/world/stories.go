package world

import (
	"slices"
	"time"
)

// Stories are what the playground tells.
var Stories = []*Story{paused(false), dead, split, restart, herd, paused(true)}

// The clients, by their names.
func ann(w *World) *Client { return w.Clients[0] }
func ben(w *World) *Client { return w.Clients[1] }

// wrote reports whether the resource has taken a write with a client's present
// token.
func wrote(w *World, c *Client) bool {
	last := w.Resource.Last(c.Name)
	return last.Accepted && last.Token == Text(c.Token())
}

func annWrote(w *World) Write { return w.Resource.Last("Ann") }

// holdsAndWrote is the end of many steps.
func holdsAndWrote(who func(*World) *Client) func(*World) bool {
	return func(w *World) bool { return who(w).Holds() && wrote(w, who(w)) }
}

// annHolds is the first step of most stories.
func annHolds(o Options) Step {
	return Step{
		New:   &o,
		Say:   "Ann asks all five servers for the lock. Three grants are a majority, and enough. Each grant expires after 6 s, unless it is extended.",
		Do:    func(w *World) { ann(w).Ask() },
		Until: holdsAndWrote(ann),
		Then:  "Ann holds the lock. With it she got a token, a number that only grows, and sends it with every write.",
	}
}

func benWaits() Step {
	return Step{
		Say:   "Ben wants the same lock. The servers refuse, and put him in their queues.",
		Do:    func(w *World) { ben(w).Ask() },
		Until: func(w *World) bool { return ben(w).Waits() },
		Then:  "Ben waits. The servers will notify him when it is his turn.",
		Check: func(w *World) bool { return ann(w).Holds() },
	}
}

// paused is the story of the paused client, and with unchecked that of a resource
// that checks no tokens.
func paused(unchecked bool) *Story {
	s := &Story{
		Name: "paused", Title: "The paused client",
		About: "A process can stop at any point: a long garbage collection, a suspended laptop, a busy host. When it continues it may still believe that it has the lock.",
	}
	end := Step{
		Say:   "Ann continues exactly where she stopped: at a write, with her old token.",
		Do:    func(w *World) { ann(w).Resume() },
		Until: func(w *World) bool { return annWrote(w).Stale && !ann(w).Believes() },
		Then:  "Ann's write was on its way before she saw that her lease is over. The resource has seen Ben's higher token, and refuses it. No lock alone can do this: the check is at the resource.",
		Check: func(w *World) bool { return !annWrote(w).Accepted && ben(w).Holds() },
	}
	if unchecked {
		s.Name, s.Title = "no-tokens", "Redlock without tokens"
		s.About = "The first story again, with a lock that has no tokens, or a resource that does not check them: that is Redlock as most libraries have it."
		end.Then, end.Bad = "The resource takes the write, and Ben's work is overwritten. There were never two valid leases: the lock did all that a lock can do.", true
		end.Check = func(w *World) bool { return annWrote(w).Accepted }
	}
	s.Steps = []Step{
		annHolds(Options{Clients: 2, Unchecked: unchecked, Seed: 1}),
		benWaits(),
		{
			Say:   "Ann's process stops, just before a write. Nothing extends her lock any more, so it expires on the servers.",
			Do:    func(w *World) { ann(w).Pause() },
			Until: holdsAndWrote(ben),
			Then:  "Ben has the lock, with a higher token, and has written. Ann's lease was over before his began; but Ann cannot know.",
			Check: func(w *World) bool { return ann(w).Believes() && ben(w).Token() > ann(w).Token() },
		},
		end,
	}
	return s
}

var dead = &Story{
	Name: "dead", Title: "One server of five dies",
	About: "A lock needs three of five servers. Two may fail, and nobody notices. When three are gone no lock is granted, and none is kept for too long.",
	Steps: []Step{
		annHolds(Options{Clients: 2, Seed: 2}),
		{
			Say:   "Server 3 dies.",
			Do:    func(w *World) { w.Servers[2].Stop() },
			Until: func(w *World) bool { return len(w.Servers[2].look().Holders) == 0 }, // a TTL later
			Then:  "Ann still has the lock: four servers have extended it.",
			Check: func(w *World) bool { return ann(w).Holds() },
		},
		{
			Say: "Ben wants the lock, and Ann releases it.",
			Do: func(w *World) {
				ben(w).Ask()
				w.after(time.Second, ann(w).Release)
			},
			Until: holdsAndWrote(ben),
			Then:  "Ben has it, from the four that are left.",
		},
		{
			Say: "Servers 4 and 5 die too. Two are left: no majority.",
			Do: func(w *World) {
				w.Servers[3].Stop()
				w.Servers[4].Stop()
			},
			Until: func(w *World) bool { return !ben(w).Believes() },
			Then:  "Ben cannot extend. His lease ends by his own clock, before the servers let anybody else in. He knows in time, without a network.",
		},
		{
			Say: "All three are back, with their data. They may have missed their last writes, so the guard quarantines them first. Ann asks.",
			Do: func(w *World) {
				for _, s := range w.Servers {
					s.Start()
				}
				ann(w).Ask()
			},
			Until: holdsAndWrote(ann),
			Then:  "Ann has the lock, with a token above Ben's.",
			Check: func(w *World) bool { return ann(w).Token() > ben(w).Token() },
		},
	},
}

var split = &Story{
	Name: "split", Title: "The split",
	About: "The network breaks in two. Ann is on the side of two servers, Ben on the side of three.",
	Steps: []Step{
		annHolds(Options{Clients: 2, Seed: 3}),
		benWaits(),
		{
			Say: "The network splits: Ann reaches servers 1 and 2, Ben reaches 3, 4 and 5.",
			Do: func(w *World) {
				for n := 1; n <= Servers; n++ {
					if n <= 2 {
						ben(w).Cut(n)
					} else {
						ann(w).Cut(n)
					}
				}
			},
			Until: func(w *World) bool { return !ann(w).Believes() },
			Then:  "Ann could not extend on a majority. Her lease is over by her own clock, and Ben does not have the lock yet.",
			Check: func(w *World) bool { return !ben(w).Holds() },
		},
		{
			Say:   "On Ben's side Ann's grants expire a moment later.",
			Until: holdsAndWrote(ben),
			Then:  "Ben has the lock from three servers. At no moment did both have it.",
		},
		{
			Say: "The network is whole again. Ann asks, waits, and Ben releases.",
			Do: func(w *World) {
				for n := 1; n <= Servers; n++ {
					ann(w).Mend(n)
					ben(w).Mend(n)
				}
				ann(w).Ask()
				w.after(2*time.Second, ben(w).Release)
			},
			Until: holdsAndWrote(ann),
			Then:  "Ann has the lock again, with a higher token.",
			Check: func(w *World) bool { return ann(w).Token() > ben(w).Token() },
		},
	},
}

// half is Ann with three servers of five.
func half(o Options, say, then string) Step {
	return Step{
		New: &o, Say: say,
		Do: func(w *World) {
			ann(w).Cut(4)
			ann(w).Cut(5)
			ann(w).Ask()
		},
		Until: holdsAndWrote(ann),
		Then:  then,
	}
}

func forgets(bad bool, until func(*World) bool, then string, check func(*World) bool) Step {
	return Step{
		Say: "Server 3 restarts, and has lost its data. Ben asks for the lock.",
		Do: func(w *World) {
			w.Servers[2].RestartEmpty()
			ben(w).Ask()
		},
		Until: until, Then: then, Check: check, Bad: bad,
	}
}

var restart = &Story{
	Name: "restart", Title: "Restart without and with the guard",
	About: "A majority protects a lock only while servers remember. One that restarts empty can turn one majority into two.",
	Steps: []Step{
		half(Options{Clients: 2, GuardOff: true, Seed: 4},
			"First with the guard off, as in plain Redlock. Ann does not reach servers 4 and 5, and asks for the lock.",
			"Ann has the lock from servers 1, 2 and 3: a majority."),
		forgets(true, func(w *World) bool { return w.twice > 0 },
			"Server 3 knows nothing of Ann. With 4 and 5 it gives Ben a majority too: two holders at once.",
			func(w *World) bool { return ann(w).Holds() && ben(w).Holds() }),
		{
			Say:   "Both write to the resource.",
			Until: func(w *World) bool { return wrote(w, ben(w)) && annWrote(w).Stale },
			Then:  "The tokens still help: after Ben's first write the resource refuses Ann's.",
			Check: func(w *World) bool { return !annWrote(w).Accepted },
		},
		half(Options{Clients: 2, Seed: 4},
			"Now the same with the guard on. Ann does not reach servers 4 and 5, and asks for the lock.",
			"Ann has the lock from servers 1, 2 and 3, as before."),
		forgets(false, func(w *World) bool {
			_, out := w.Servers[2].quarantine()
			return out && w.Servers[2].state.Marker.ID == w.Servers[2].state.ID && ben(w).claim.waited
		},
			"Ben has noticed that server 3 may have forgotten locks, and has marked it: it grants nothing until every lock that it may have granted is over.",
			func(w *World) bool { return !ben(w).Holds() }),
		{
			Say:   "Ann has two servers left that know her lock, so she cannot extend it. Ben waits.",
			Until: holdsAndWrote(ben),
			Then:  "Ann's lease was over before Ben got the lock. One holder at any moment.",
			Check: func(w *World) bool { return !ann(w).Believes() },
		},
	},
}

// served is the order in which clients got the lock.
func (w *World) served() (all []string) {
	for _, wr := range w.Resource.Writes {
		if !slices.Contains(all, wr.By) {
			all = append(all, wr.By)
		}
	}
	return all
}

var herd = &Story{
	Name: "herd", Title: "The herd and the queue",
	About: "Six clients want the lock at once. Clients that poll get it in any order, and ask again and again. Here the servers keep a queue.",
	Steps: []Step{
		annHolds(Options{Clients: 6, Seed: 5}),
		{
			Say: "Ben, Cleo, Dan, Eve and Finn come, a moment after each other.",
			Do: func(w *World) {
				for i, c := range w.Clients[1:] {
					c.every, c.hold = 300*time.Millisecond, 600*time.Millisecond
					w.after(time.Duration(i)*60*time.Millisecond, c.Ask)
				}
			},
			Until: func(w *World) bool {
				return !slices.ContainsFunc(w.Clients[1:], func(c *Client) bool { return !c.Waits() })
			},
			Then: "All five are in the queues of a majority, in the order in which they came.",
			Check: func(w *World) bool {
				unsorted := func(s *Server) bool { return !slices.IsSorted(s.show().Queue) } // their names are in that order
				return !slices.ContainsFunc(w.Servers, unsorted) && ann(w).Holds()
			},
		},
		{
			Say:   "Ann releases. Each of the others works for a moment, and releases.",
			Do:    func(w *World) { ann(w).Release() },
			Until: func(w *World) bool { return len(w.served()) == len(w.Clients) && len(w.Holders()) == 0 },
			Then:  "Everybody was served, in order. Each hand-over was a notification to the next in the queue: no herd, and nobody was overtaken.",
			Check: func(w *World) bool {
				unasked := func(c *Client) bool { return c.turns == 0 }
				return !slices.ContainsFunc(w.Clients[1:], unasked) && slices.Equal(w.served(), names)
			},
		},
	},
}
