package nodetest

import (
	"slices"
	"time"

	"github.com/redlatch/redlatch/node"
)

// listClaims are for nodes that can list their names.
var listClaims = []claim{
	{"a held name is listed with its holder", func(p *probe) {
		token := p.take("one")
		p.expect(node.Held, p.b, p.release("two", token+5))
		l, listed := p.list(p.name)[p.name]
		if !listed {
			p.Fatalf("the name is not listed")
		}
		for _, l := range []node.Listing{l, p.look(p.name)} {
			r := l.Reply
			if l.Name != p.name || r.Status != node.Held || r.Value != "one" || r.Fence != token+5 || r.HolderToken != token || l.Waiting != 0 {
				p.Errorf("listed is %+v, want it held by one with the token %d, and the fence 5 above", l, uint64(token))
			}
			if p.left(r, 0, p.long()); r.Now.IsZero() {
				p.Errorf("the listing has no time")
			}
		}
	}},
	{"a free name is not listed", func(p *probe) {
		token := p.token(0)
		p.takeAndRelease(p.a, "one", token)
		p.expect(node.Granted, p.a, withTTL(withName(p.acquire("one", token), p.name+"/brief"), p.h.Unit))
		p.outlast(p.h.Unit)
		if all := p.list(p.name); len(all) > 0 {
			p.Errorf("listed are %v", all)
		}
		if l := p.look(p.name); l.Reply.Status != node.Absent || l.Reply.Fence != token {
			p.Errorf("a look says %+v, want nobody, and the fence %d", l, uint64(token))
		}
	}},
	{"a break of a holder is listed, also after the next grant", func(p *probe) {
		token := p.take("one")
		p.expect(node.Granted, p.b, p.breakUp(token+5))
		p.expect(node.Granted, p.b, withName(p.breakUp(token+5), p.name+"/free"))
		listed := func() {
			all := p.list(p.name)
			if len(all) != 1 || all[p.name].Broken != token+5 {
				p.Errorf("listed are %v, want the name alone, broken by the token %d", all, uint64(token+5))
			}
			if l := p.look(p.name); l.Broken != token+5 {
				p.Errorf("a look says %+v, want it broken by the token %d", l, uint64(token+5))
			}
		}
		listed()
		p.expect(node.Granted, p.a, p.acquire("two", token+6))
		listed()
		p.expect(node.Granted, p.a, p.release("two", token+6))
		listed()
	}},
	{"a listing keeps to its prefix", func(p *probe) {
		token := p.token(0)
		for _, name := range []string{p.name, p.name + "/a", p.name + "/b*", "x" + p.name} {
			p.expect(node.Granted, p.a, withName(p.acquire("one", token), name))
		}
		for prefix, want := range map[string]int{p.name: 3, p.name + "/": 2, p.name + "/b*": 1, p.name + "/*": 0} {
			if all := p.list(prefix); len(all) != want {
				p.Errorf("under %q %d are listed, want %d", prefix, len(all), want)
			}
		}
	}},
	{"looking changes nothing", func(p *probe) {
		half := p.long() / 2
		token := p.token(0)
		if l := p.look(p.name); l.Reply.Status != node.Absent || l.Waiting != 0 {
			p.Errorf("a look at an unknown name says %+v", l)
		}
		p.expect(node.Granted, p.a, withTTL(p.acquire("one", token), half))
		p.list(p.name)
		p.look(p.name)
		p.left(p.heldBy("one"), 0, half)
		p.fence(token)
	}},
	{"a name is listed with its waiters", func(p *probe) {
		first := p.line(p.a)
		p.expect(node.Held, p.a, p.wait("late", first, 2*time.Millisecond))
		p.expect(node.Held, p.a, p.wait("early", first, 1*time.Millisecond))
		ticket := int64(first) + 1000
		want := []node.Waiter{{Value: "early", Ticket: ticket}, {Value: "late", Ticket: ticket + 1000}}
		if p.h.Arrival {
			slices.Reverse(want)
		}
		l := p.look(p.name)
		for i := range l.Waiters {
			l.Waiters[i].Process = "" // whatever it is called
		}
		if l.Waiting != 2 || !slices.Equal(l.Waiters, want) {
			p.Errorf("waiting are %d, %v, want %v", l.Waiting, l.Waiters, want)
		}
		// Also if the name is free.
		p.expect(node.Granted, p.a, p.release("holder", 0))
		if l, listed := p.list(p.name)[p.name]; !listed || l.Waiting != 2 || len(l.Waiters) != 0 || l.Reply.Status != node.Absent {
			p.Errorf("a free name with two waiters is listed (%v) as %+v", listed, l)
		}
	}},
}

// list returns what node b lists under a prefix, by name.
func (p *probe) list(prefix string) map[string]node.Listing {
	p.Helper()
	n, ok := p.b.(node.Lister)
	if !ok {
		p.Fatalf("%v is no node.Lister, which the suite needs", p.b)
	}
	all := map[string]node.Listing{}
	err := n.List(p.context(), prefix, func(l node.Listing) {
		if _, twice := all[l.Name]; twice {
			p.Errorf("%q is listed twice", l.Name)
		}
		all[l.Name] = l
	})
	p.late.check()
	if err != nil {
		p.Fatalf("list: %v", err)
	}
	return all
}

func (p *probe) look(name string) node.Listing {
	p.Helper()
	l, err := p.b.(node.Lister).Look(p.context(), name)
	p.late.check()
	if err != nil {
		p.Fatalf("look: %v", err)
	}
	return l
}
