package explore

import (
	"fmt"
	"slices"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// This file is the membership change, as protocol.Change decides it, and the markings by
// clients of both memberships. The operator reads all markers at once. Each server is
// then barred or marked at any time, or does not answer.

// operator is a change that runs, and where its servers are.
type operator struct {
	protocol.Change
	at, own []int
}

// order is a request of the operator that is in flight: to its server i, -1 if it was
// stopped since.
type order struct {
	server, i int
	kind      Kind
	req       node.MarkRequest
}

func (m *machine) operate(s *State, do doer) {
	former, own, client := m.lists[0], m.lists[1], 1
	switch last := s.runs == 1; {
	case last && m.in.Back:
		former, own, client = own, former, 0
	case last && m.in.Former != nil:
		former = m.in.Former
	}
	switch {
	case s.runs == 0:
	case s.op == nil:
		do(Step{Kind: Change}, func(s *State) {
			s.runs--
			mine := *m.guard[client]
			mine.Generation, mine.Off = 0, false
			m.proceed(s, &operator{protocol.NewChange(mine, protocol.Fixed{}, names(former), names(own)), slices.Concat(former, own), own})
		})
	default:
		do(Step{Kind: Stop}, func(s *State) {
			s.op, s.orders = nil, slices.Clone(s.orders)
			for k := range s.orders {
				s.orders[k].i = -1
			}
			if m.in.Back { // the operator waits until servers refuse them
				s.orders = nil
			}
		})
	}
	for k, o := range s.orders {
		tell := func(kind Kind, executed, heard bool) {
			do(Step{Kind: kind, Server: o.server}, func(s *State) {
				s.orders = slices.Delete(slices.Clone(s.orders), k, k+1)
				var reply node.MarkReply
				if executed {
					reply = s.own(o.server).Mark(s.clockOf(o.server), o.req)
				}
				if o.i >= 0 {
					m.hear(s, o.i, &reply, heard)
				}
			})
		}
		tell(o.kind, true, true)
		if o.i >= 0 && s.silences > 0 {
			tell(Silence, false, false)
			tell(o.kind+Unheard, true, false)
		}
	}
}

// names are what servers are called in lists.
func names(servers []int) (all []string) {
	for _, i := range servers {
		all = append(all, fmt.Sprint(i))
	}
	return all
}

// hear hands an answer to the operator, or that there is none.
func (m *machine) hear(s *State, i int, reply *node.MarkReply, heard bool) {
	op, a := *s.op, protocol.ChangeAnswer{Server: i, Silent: !heard}
	if heard {
		a.MarkerState, a.Differs, a.ID = protocol.Says(reply), reply.Status == node.Misconfigured, fmt.Sprint(op.at[i])
	} else {
		s.silences--
	}
	before := op.State
	op.Handle(a)
	if s.op = &op; op.State != before {
		m.proceed(s, &op)
	}
}

// proceed does what a change asks for.
func (m *machine) proceed(s *State, op *operator) {
	s.op = op
	req := node.MarkRequest{Mark: node.MarkRead, Guard: &op.Mine, Least: op.Least}
	switch op.State {
	case protocol.ChangeDone, protocol.ChangeRefused:
		m.seen[fmt.Sprint("membership change, refused: ", op.State == protocol.ChangeRefused)]++
		s.op = nil
	case protocol.ReadingMarkers, protocol.Looking:
		asked := protocol.Set(0)
		for _, i := range op.Servers {
			server := op.at[i]
			if silent := int64(1) << server; s.step.Token&silent != 0 {
				s.silences++ // in both lists
			} else if s.silences > 0 && !asked.Has(server) && s.choice.of(2) == 1 {
				s.step.Token |= silent
			}
			asked |= protocol.Of(server)
			reply := s.servers[server].Mark(s.clockOf(server), req)
			m.hear(s, i, &reply, s.step.Token>>server&1 == 0)
		}
	case protocol.Barring, protocol.Replacing:
		s.orders = slices.Clone(s.orders)
		for _, i := range op.Servers {
			kind, req, guard := Mark, req, *req.Guard
			if req.Mark, req.Guard = node.MarkReplace, &guard; op.State == protocol.Barring {
				kind, req.Mark = Bar, node.MarkBar
			}
			s.orders = append(s.orders, order{op.at[i], i, kind, protocol.MarkWith(req, "", "", 0, slices.Contains(op.own, op.at[i]))})
		}
	}
}

// marked takes the markings by a client of either membership. Each may happen: that more
// servers answer only has protocol.ToMark and ToTake name more.
func (m *machine) marked(s *State, c int, do doer) {
	list, mine, returns := m.lists[c], m.guard[c], s.returns[c]
	nodes := make([]protocol.Seen, len(list))
	for n, i := range list {
		r := s.servers[i].Mark(s.clockOf(i), node.MarkRequest{Mark: node.MarkRead, Guard: mine})
		nodes[n] = protocol.See(mine, protocol.Says(&r), r.Status != node.Misconfigured, r.Lineage, r.Epoch)
	}
	if protocol.Returned(nodes, returns) {
		returns = 0
	}
	marks := protocol.ToMark(nodes, returns) | protocol.ToTake(nodes, mine.Generation)
	for n, i := range list {
		if marks.Has(n) {
			do(Step{Kind: MarkBy, Claim: c * MaxTries, Server: i}, func(s *State) {
				s.returns[c] = returns
				s.own(i).Mark(s.clockOf(i), node.MarkRequest{Mark: node.MarkWrite, Guard: mine})
			})
		}
	}
}
