package explore

import (
	"fmt"
	"strings"

	"github.com/redlatch/redlatch/node"
)

// story says how each state led to the next, one step a line. Times are in ticks
// and tokens in microseconds, from the beginning.
func (m *machine) story(path []*State) string {
	var text strings.Builder
	token := func(t node.Token) int64 { return int64(t) - base.UnixMicro() }
	for i, to := range path[1:] {
		from, asked := path[i], ""
		if c := to.claims[to.step.Claim]; c != nil {
			asked = fmt.Sprint(token(c.Token()))
		}
		words := strings.NewReplacer("WHO", m.name(to.step.Claim), "NODE", fmt.Sprint("node ", to.step.Server),
			"OP", to.step.Op.String(), "TOKEN", asked, "SAID", to.said.String())
		fmt.Fprintf(&text, "%3d. t=%-2d %s", i+1, (to.now-start)/Tick, words.Replace(string(to.step.Kind)))
		for k, c := range to.claims {
			if c == nil {
				continue
			}
			was, is := from.valid(k), to.valid(k)
			switch {
			case is && (!was || c.Deadline() > from.claims[k].Deadline()):
				fmt.Fprintf(&text, "; %s holds the lock (%s) with token %d until t=%.2f",
					m.name(k), c.Share().Text(), token(c.Token()), float64(c.Deadline()-start)/float64(Tick))
			case was && !is:
				fmt.Fprintf(&text, "; %s's lease ends", m.name(k))
			case c.over && from.claims[k] != nil && !from.claims[k].over:
				fmt.Fprintf(&text, "; %s gives up", m.name(k))
			}
		}
		text.WriteByte('\n')
	}
	return text.String()
}

// name is what a claim is called. Servers have numbers.
func (m *machine) name(k int) string {
	n := string(rune('X' + m.client(k)))
	if m.in.Tries[m.client(k)] > 1 {
		n += fmt.Sprint(k%MaxTries + 1)
	}
	return n
}
