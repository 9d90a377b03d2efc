package ui

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/lockerrors"
	"github.com/redlatch/redlatch/node/risk"
)

// health is how a node is, in one word.
type health string

// The healths of a node.
const (
	inService   health = "in service"
	noAnswer    health = "no answer"
	refused     health = "refused"
	quarantined health = "quarantine"
	unmarked    health = "not marked"
	underserved health = "too few replicas"
)

// nodeHealth is what is shown of a node.
type nodeHealth struct {
	name   string
	short  string // what the other nodes do not have in their names too
	health health
	why    string
	until  time.Time // the end of its quarantine; zero for none
	since  time.Time // when a survey first found it so

	known      bool // it answered, so the following are set
	pulse      *admin.NodePulse
	clock      time.Duration // from the median of the nodes' clocks, or from ours for one node
	clockAlarm risk.Severity
}

// healths returns how the nodes are. at is when they answered.
func healths(p *admin.Pulse, at time.Time) []nodeHealth {
	all := make([]nodeHealth, len(p.Nodes))
	var clocks []time.Duration
	for i := range p.Nodes {
		all[i] = newHealth(&p.Nodes[i], p.Guarded, at)
		if n := &all[i]; n.known {
			if n.clock = n.pulse.Clock; !n.pulse.Clockless {
				clocks = append(clocks, n.clock)
			}
		}
	}
	shorten(all)
	if len(clocks) < 2 {
		return all
	}
	slices.Sort(clocks)
	middle := clocks[len(clocks)/2]
	for i := range all {
		if n := &all[i]; n.known && !n.pulse.Clockless {
			n.clock -= middle
			n.clockAlarm = p.ClockSeverity(n.clock.Abs() - n.pulse.ClockError)
		}
	}
	return all
}

// shorter matches names of nodes; what is in parentheses is enough if it tells them apart:
// the host, the port, or all but the scheme.
var shorter = []*regexp.Regexp{
	regexp.MustCompile(`^[^:]+://(.+):[^:]*$`), regexp.MustCompile(`^[^:]+://.+(:[^:]*)$`), regexp.MustCompile(`^[^:]+://(.+)$`), regexp.MustCompile(`(.*)`),
}

// shorten gives nodes short names.
func shorten(nodes []nodeHealth) {
	for _, names := range shorter {
		all := map[string]bool{}
		for i := range nodes {
			if found := names.FindStringSubmatch(nodes[i].name); found != nil {
				nodes[i].short = found[1]
				all[found[1]] = true
			}
		}
		if len(all) == len(nodes) {
			return
		}
	}
}

// newHealth returns how one node is.
func newHealth(p *admin.NodePulse, guarded bool, at time.Time) nodeHealth {
	n := nodeHealth{name: p.Node, pulse: p, known: p.Err == nil, health: inService}
	switch s := &p.State; {
	case p.Err != nil:
		n.health, n.why = noAnswer, errorText(p.Err)
	case !guarded:
	case s.Reason == node.ReasonBarred:
		n.health, n.why = refused, "barred: "+lockerrors.Reason(s.Reason)
	case errors.Is(s.Err, node.ErrConfig):
		n.health, n.why = refused, errorText(s.Err)
	case s.Err != nil:
		n.health, n.why, n.known = noAnswer, errorText(s.Err), false
	case s.Left > 0:
		n.health, n.why, n.until = quarantined, lockerrors.Reason(s.Reason), at.Add(s.Left)
	case !s.Trusted:
		n.health, n.why = unmarked, "new, or restarted since it was marked"
	case s.Marked != nil && s.Replicas < s.Marked.Replicas:
		n.health, n.why = underserved, fmt.Sprintf("%d of %d required replicas are online", s.Replicas, s.Marked.Replicas)
	}
	return n
}

// serving returns how many nodes are in service.
func serving(nodes []nodeHealth) int {
	n := 0
	for i := range nodes {
		if nodes[i].health == inService {
			n++
		}
	}
	return n
}

// errorText is an error on one line.
func errorText(err error) string {
	return strings.Join(strings.Fields(lockerrors.Text(err)), " ")
}
