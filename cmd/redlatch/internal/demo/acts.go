package demo

import "fmt"

// open starts the nodes and the account.
func (s *story) open() {
	for i := range nodeCount {
		s.nodes = append(s.nodes, s.start(fmt.Sprint("server ", i+1)))
	}
	for range s.nodes {
		s.addresses = append(s.addresses, s.next().Address)
	}
	var err error
	s.account, err = openAccount(!s.NoFence, s.observe)
	must(err)
	checks := "checks tokens"
	if s.NoFence {
		checks = "does not check tokens"
	}
	s.say("", Plain, "%d lock servers, each a process on this machine; an account that %s", len(s.addresses), checks)
}

// contention has several clients change the balance at once.
func (s *story) contention() {
	const clients, times, amount = 3, 2, 10
	s.say("", Heading, "1. Three clients add %d to one balance, twice each, at once", amount)
	for i := range clients {
		s.client(order{Name: fmt.Sprint("client ", i+1), Amount: amount, Times: times})
	}
	additions := 0
	for range 2 * clients * times { // each addition, and its end
		r := s.next()
		switch r.What {
		case written:
			additions++
			s.say(r.from.name, Plain, "%s", r.sum())
		case ended:
		default:
			must(fmt.Errorf("%s reported %q: %s", r.from.name, r.What, r.Text))
		}
		r.from.answer()
	}
	missing := additions*amount - s.account.read()
	s.promise(missing == 0, "account", "balance %d after %d additions: %d lost", s.account.read(), additions, missing/amount)
}

// sum is what was written, as a line has it.
func (e event) sum() string {
	return fmt.Sprintf("token %v  %d + %d = %d", e.Token, e.Was, e.Is-e.Was, e.Is)
}

// pausedHolder stops a client between its last look at the lock and its write.
func (s *story) pausedHolder() {
	s.say("", Heading, "2. A client is paused for longer than its lock lives")
	a := s.client(order{Name: "A", Amount: 10, Pauses: true})
	e := s.expect(a, about)
	must(a.pause())
	s.say("A", Plain, "token %v  has the lock, read %d, is about to write %d", e.Token, e.Was, e.Is)
	s.say("A", Fault, "process %d is stopped (SIGSTOP)", a.pid())
	other := s.takesOver()
	a.answer()
	must(a.resume())
	s.say("A", Fault, "process %d goes on (SIGCONT), and writes %d", a.pid(), e.Is)

	e = s.expect(a, written, refused)
	a.answer()
	if e.What == refused {
		s.promise(e.Highest == other.Token, "account", "refuses A: token %v is older than %v", e.Token, e.Highest)
	} else {
		s.broken = s.broken || !s.NoFence
		s.say("account", Bad, "accepts A, whose token %v is older than %v", e.Token, other.Token)
	}
	if balance := s.account.read(); balance == other.Is {
		s.say("account", Good, "balance %d: what B wrote is still there", balance)
	} else {
		s.say("account", Bad, "balance %d: the %d that B added are lost", balance, other.Is-other.Was)
	}
	s.expect(a, lost)
	a.answer()
	s.say("A", Good, "its client reports that the lock was lost")
}

// takesOver is another client's turn. It returns what that client wrote.
func (s *story) takesOver() event {
	b := s.client(order{Name: "B", Amount: 5, Looks: true})
	e := s.expect(b, waits, written)
	if e.What == waits {
		s.say("B", Plain, "waits: the lock of %s expires in %.1f s", e.Holder, e.Left.Seconds())
		b.answer()
		e = s.expect(b, written)
	}
	s.say("B", Plain, "%s", e.sum())
	b.answer()
	s.expect(b, ended)
	b.answer()
	return e
}

// deadServers kills a minority of the servers, and then one more.
func (s *story) deadServers() {
	s.say("", Heading, "3. Servers die")
	s.crash(0, 1)
	c := s.client(order{Name: "C", Amount: 10})
	e := s.expect(c, written)
	s.promise(e.Answered >= 3, "C", "%s, with %d of %d servers", e.sum(), e.Answered, len(s.nodes))
	c.answer()
	s.expect(c, ended)
	c.answer()

	s.crash(2)
	d := s.client(order{Name: "D", Amount: 10, Once: true})
	e = s.expect(d, outage, written)
	if e.What == outage {
		s.promise(true, "D", "gets no lock: %d of %d servers are needed, and %d are left", e.Need, len(s.nodes), s.running())
	} else {
		s.promise(false, "D", "%s, with %d of %d servers", e.sum(), e.Answered, len(s.nodes))
	}
	d.answer()
}

// crash kills servers.
func (s *story) crash(which ...int) {
	for _, i := range which {
		p := s.nodes[i]
		p.kill()
		s.say(p.name, Fault, "process %d is killed (SIGKILL)", p.pid())
	}
}

// running returns how many servers run.
func (s *story) running() (n int) {
	for _, p := range s.nodes {
		if !p.killed.Load() {
			n++
		}
	}
	return n
}
