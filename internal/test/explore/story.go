package explore

import (
	"fmt"
	"slices"
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

// texts are the steps in words.
var texts = map[Kind]string{
	TimePasses: "a tick passes",
	Begin:      "WHO asks all nodes, with token TOKEN",
	Cancel:     "WHO gives up",
	Extend:     "WHO asks all nodes to extend",
	Downgrade:  "WHO becomes a reader, and asks all nodes to extend",
	Release:    "WHO releases the lock",
	Deliver:    "NODE executes WHO's OP",
	Lose:       "NODE executes WHO's OP, and the answer is lost",
	Delay:      "NODE executes WHO's OP, and the answer is late",
	Twice:      "NODE executes WHO's OP, and will do so once more",
	Arrive:     "NODE's answer reaches WHO late",
	Break:      "WHO's connection to NODE breaks, with its OP in flight",
	Notify:     "NODE notifies WHO",
	Miss:       "NODE's notification of WHO is lost",
	Expire:     "the key on NODE expires early",
	Empty:      "NODE restarts without its data",
	Save:       "NODE saves its data",
	OldData:    "NODE restarts with what it saved",
	Flush:      "NODE is flushed",
	ClockBack:  "the clock of NODE is set back",
	Bar:        "NODE is barred",
	Mark:       "NODE is marked for the new membership",
	MarkOld:    "NODE is marked for the former membership",
	Promote:    "a replica without the last writes takes the place of NODE",
	FailBack:   "NODE comes back as it was, in the place of the replica",
	MarkAgain:  "NODE is marked again",
}

func (st *story) what(step Step, from, to *State) string {
	op := step.Op.String()
	switch step.Kind {
	case Deliver, Lose, Delay, Twice:
		op += st.answer(step, from)
	}
	asked := ""
	if c := to.claims[step.Claim]; c != nil {
		asked = fmt.Sprint(token(c.Token()))
	}
	return strings.NewReplacer("WHO", st.name(step.Claim), "NODE", fmt.Sprint("node ", step.Server), "OP", op, "TOKEN", asked).Replace(texts[step.Kind])
}

// answer says what a server answers to a request. If several requests fit the
// step, it describes the first.
func (st *story) answer(step Step, from *State) string {
	i := slices.IndexFunc(from.messages, func(msg *message) bool {
		return msg.claim == step.Claim && msg.server == step.Server && msg.req.Op == step.Op && !msg.done
	})
	if i < 0 {
		return ""
	}
	msg := from.messages[i]
	reply := newMachine(st.m.in).execute(from.clone(), msg)
	text := fmt.Sprintf(" with token %d: %v", token(msg.req.Token), reply.Status)
	if reply.Status == node.Granted && reply.Share.Mode == node.Slotted {
		text += fmt.Sprintf(", slot %d", reply.Share.Slot)
	}
	if !msg.awaited && step.Kind == Deliver {
		text += ", and nobody waits for the answer"
	}
	return text
}
