package model

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Kind is what kind of thing happens.
type Kind uint8

// The kinds of steps.
const (
	Tick      Kind = iota
	Begin          // a client asks all nodes
	Again          // it asks again, with another token
	End            // it gives up, or releases
	Extend         // it asks for an extension
	Carry          // a node carries out a request, and its answer is taken in
	Lose           // the same, and the answer is lost
	Delay          // the same, and the answer is on its way
	Twice          // the same as Carry, and the request will come once more
	Arrive         // an answer arrives late
	Expire         // a key runs out early, by the drift of the node's clock
	Empty          // a node restarts without its data
	Save           // a node writes its data to disk
	OldData        // a node restarts with the data that it saved
	Flush          // a node is flushed
	ClockBack      // a node's clock is set back, from too fast to too slow
	Remark         // a node is marked for the change of the list
	kinds
)

// Step is one thing that happens.
type Step struct {
	Kind              Kind
	Client, Node, Arg int8
}

// System returns the model as something to be searched, from where the bounds
// have it start. It panics if they ask for a step that is not possible.
func (m *Model) System() System[State, Step] {
	states, ok := m.Replay(m.b.Start)
	if !ok {
		panic(fmt.Sprintf("model: step %d of the start is not possible", len(states)))
	}
	return System[State, Step]{
		Init: states[len(states)-1], Next: m.Next, Fingerprint: m.Fingerprint,
		Wrong: func(s *State) bool { return s.Bad != Fine },
	}
}

// Explore searches the model. A trace that it finds includes the start.
func (m *Model) Explore(ctx context.Context, lim Limits) Result[Step] {
	return m.search(ctx, m.System(), lim)
}

// Reach searches for a state in which somebody holds the lock.
func (m *Model) Reach(ctx context.Context, lim Limits) Result[Step] {
	sys := m.System()
	sys.Wrong = func(s *State) bool {
		for c := range m.b.Clients {
			if s.Clients[c].Phase == Holds {
				return true
			}
		}
		return false
	}
	return m.search(ctx, sys, lim)
}

func (m *Model) search(ctx context.Context, sys System[State, Step], lim Limits) Result[Step] {
	r := Explore(ctx, sys, lim)
	if r.Trace != nil {
		r.Trace = append(slices.Clone(m.b.Start), r.Trace...)
	}
	return r
}

// Verdict is what is wrong at the end of a trace.
func (m *Model) Verdict(trace []Step) Violation {
	states, _ := m.Replay(trace)
	return states[len(states)-1].Bad
}

// Replay takes the steps from the beginning and returns every state there was,
// the first included; false if a step was not possible.
func (m *Model) Replay(trace []Step) ([]State, bool) {
	states := []State{m.Init()}
	for _, step := range trace {
		found := false
		m.Next(&states[len(states)-1], func(t Step, s *State) {
			if t == step && !found {
				found = true
				states = append(states, *s)
			}
		})
		if !found {
			return states, false
		}
	}
	return states, true
}

// Story tells a trace, one step a line. Times and tokens in it are counted from
// the beginning, tokens in units of a quarter of a tick.
func (m *Model) Story(trace []Step) string {
	states, ok := m.Replay(trace)
	var b strings.Builder
	now := 0
	for i, s := range states[1:] {
		step := trace[i]
		if step.Kind == Tick {
			now++
		}
		fmt.Fprintf(&b, "%3d. t=%-2d %s", i+1, now, m.tell(&states[i], step, now*unit))
		for c := range m.b.Clients {
			was, is := states[i].Clients[c], s.Clients[c]
			switch {
			case is.Phase == Holds && was.Phase != Holds:
				fmt.Fprintf(&b, "; %s holds the lock with token %d for %d", name(c), m.at(is, now), is.Left)
			case is.Phase == Holds && is.Left > was.Left:
				fmt.Fprintf(&b, "; %s holds it for %d", name(c), is.Left)
			case was.Phase == Holds && is.Phase != Holds && step.Kind == Tick:
				fmt.Fprintf(&b, "; %s's lease ends", name(c))
			}
		}
		b.WriteByte('\n')
	}
	if !ok {
		b.WriteString("     a step that is not possible\n")
	}
	if bad := states[len(states)-1].Bad; bad != Fine {
		fmt.Fprintf(&b, "     %s\n", bad)
	}
	return b.String()
}

func (m *Model) at(cl Client, now int) int { return int(m.latest(&cl, cl.Try-1)) + now*unit }

// name is what a client is called. Nodes have numbers.
func name(c int) string { return string(rune('X' + c)) }

func (m *Model) tell(s *State, step Step, zero int) string {
	who := name(int(step.Client))
	switch step.Kind {
	case Tick:
		return "time goes on"
	case Begin:
		return fmt.Sprintf("%s asks all nodes, proposing %d", who, int(step.Arg)+zero)
	case Again:
		return fmt.Sprintf("%s asks all nodes again, proposing %d", who, int(step.Arg)+zero)
	case End:
		if s.Clients[step.Client].Phase == Holds {
			return who + " releases the lock"
		}
		return who + " gives up and sends releases"
	case Extend:
		return who + " asks all nodes to extend"
	case Arrive:
		return fmt.Sprintf("node %d's answer reaches %s", step.Node, who)
	case Expire:
		return fmt.Sprintf("the key on node %d runs out early", step.Node)
	case Empty:
		return fmt.Sprintf("node %d restarts without its data", step.Node)
	case Save:
		return fmt.Sprintf("node %d saves its data", step.Node)
	case OldData:
		return fmt.Sprintf("node %d restarts with what it saved", step.Node)
	case Flush:
		return fmt.Sprintf("node %d is flushed", step.Node)
	case ClockBack:
		return fmt.Sprintf("the clock of node %d is set back", step.Node)
	case Remark:
		return fmt.Sprintf("node %d is %v", step.Node, Mark(step.Arg))
	}
	t := *s
	cl := &s.Clients[step.Client]
	msg, try := step.Arg, m.tryOf(cl, step.Arg)
	a := m.carryOut(&t, int(step.Node), int(step.Client), msg)
	token := m.latest(cl, try)
	what := "repair"
	switch {
	case msg < releaseAt:
		what, token = "acquire", cl.Tokens[msg]
	case msg < extendAt:
		what = "release"
	case msg < repairAt:
		what = "extend"
	}
	end := map[Kind]string{Lose: ", and the answer is lost", Delay: ", and the answer is on its way", Twice: ", and will do so once more"}[step.Kind]
	return fmt.Sprintf("node %d carries out %s's %s of try %d with token %d: %v%s", step.Node, who, what, try+1, int(token)+zero, a, end)
}
