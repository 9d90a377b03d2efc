package explore

import (
	"fmt"
	"strings"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// story writes a way down, one step a line. Times are in ticks and tokens in
// microseconds, from the beginning.
type story struct {
	m     *machine
	steps []Step
	text  strings.Builder
}

// add writes down that a step led from one state to another.
func (st *story) add(step Step, from, to *State) {
	st.steps = append(st.steps, step)
	fmt.Fprintf(&st.text, "%3d. t=%-2d %s", len(st.steps), (to.now-start)/Tick, st.what(step, from, to))
	for k, c := range to.claims {
		if c == nil {
			continue
		}
		was, is := from.valid(k), to.valid(k)
		switch {
		case is && !was:
			what := "the lock"
			if s := c.Share(); s.Mode != node.Exclusive {
				what += fmt.Sprintf(" (%v)", s)
			}
			fmt.Fprintf(&st.text, "; %s holds %s with token %d until t=%.2f", st.name(k), what, token(c.Token()), ticks(c.Deadline()))
		case is && c.Deadline() > from.claims[k].Deadline():
			fmt.Fprintf(&st.text, "; %s holds it until t=%.2f", st.name(k), ticks(c.Deadline()))
		case was && !is && step.Kind != Release:
			fmt.Fprintf(&st.text, "; %s's lease ends", st.name(k))
		case c.over && from.claims[k] != nil && !from.claims[k].over && step.Kind != Release && step.Kind != Cancel:
			fmt.Fprintf(&st.text, "; %s gives up", st.name(k))
		}
	}
	if to.bad != Fine {
		fmt.Fprintf(&st.text, "\n     %s", to.bad)
	}
	st.text.WriteByte('\n')
}

func token(t node.Token) int64 { return int64(t) - base.UnixMicro() }

func ticks(at protocol.Instant) float64 { return float64(at-start) / float64(Tick) }

// name is what a claim is called. Servers have numbers.
func (st *story) name(k int) string {
	n := string(rune('X' + st.m.client(k)))
	if st.m.in.Tries[st.m.client(k)] > 1 {
		n += fmt.Sprint(k%MaxTries + 1)
	}
	return n
}

var opNames = map[node.Op]string{
	node.OpAcquire: "acquire", node.OpExtend: "extend", node.OpRelease: "release", node.OpRepair: "repair", node.OpOffer: "offer",
}

// ofNodes are the steps of a node alone.
var ofNodes = map[Kind]string{
	Expire:    "the key on NODE expires early",
	Empty:     "NODE restarts without its data",
	Save:      "NODE saves its data",
	OldData:   "NODE restarts with what it saved",
	Flush:     "NODE is flushed",
	ClockBack: "the clock of NODE is set back",
	Bar:       "NODE is barred",
	Mark:      "NODE is marked for the new membership",
	MarkOld:   "NODE is marked for the former membership",
	Promote:   "a replica without the last writes takes the place of NODE",
	FailBack:  "NODE comes back as it was, in the place of the replica",
	MarkAgain: "NODE is marked again",
}

func (st *story) what(step Step, from, to *State) string {
	who := st.name(step.Claim)
	switch step.Kind {
	case TimePasses:
		return "a tick passes"
	case Begin:
		return fmt.Sprintf("%s asks all nodes, with token %d", who, token(to.claims[step.Claim].Token()))
	case Cancel:
		return who + " gives up"
	case Extend:
		return who + " asks all nodes to extend"
	case Downgrade:
		return who + " becomes a reader, and asks all nodes to extend"
	case Release:
		return who + " releases the lock"
	case Arrive:
		return fmt.Sprintf("node %d's answer reaches %s late", step.Server, who)
	case Break:
		return fmt.Sprintf("%s's connection to node %d breaks, with its %s in flight", who, step.Server, opNames[step.Op])
	case Notify:
		return fmt.Sprintf("node %d notifies %s", step.Server, who)
	case Miss:
		return fmt.Sprintf("node %d's notification of %s is lost", step.Server, who)
	}
	if text := ofNodes[step.Kind]; text != "" {
		return strings.ReplaceAll(text, "NODE", fmt.Sprint("node ", step.Server))
	}
	return st.delivery(step, from, who)
}

// delivery says what a server did with a request, and answered. If several
// requests fit the step, it describes the first.
func (st *story) delivery(step Step, from *State, who string) string {
	text := fmt.Sprintf("node %d executes %s's %s", step.Server, who, opNames[step.Op])
	for _, msg := range from.messages {
		if msg.claim == step.Claim && msg.server == step.Server && msg.req.Op == step.Op && !msg.done {
			t := from.clone()
			reply := newMachine(st.m.in).execute(t, msg)
			text += fmt.Sprintf(" with token %d: %v", token(msg.req.Token), reply.Status)
			if reply.Status == node.Granted && reply.Share.Mode == node.Slotted {
				text += fmt.Sprintf(", slot %d", reply.Share.Slot)
			}
			if !msg.awaited && step.Kind == Deliver {
				text += ", and nobody waits for the answer"
			}
			break
		}
	}
	return text + map[Kind]string{
		Lose: ", and the answer is lost", Delay: ", and the answer is late", Twice: ", and will do so once more",
	}[step.Kind]
}
