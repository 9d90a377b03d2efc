package ui

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/node"
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
	health health
	why    string
	until  time.Time // the end of its quarantine; zero for none
	since  time.Time // when a survey first found it so

	known           bool // it answered, so the following are set
	pulse           *admin.NodePulse
	median, slowest time.Duration // of the last round trips
	clock           time.Duration // from the median of the nodes' clocks, or from ours for one node
	clockAlarm      node.Severity
}

// recent are the last round trips of each node.
type recent struct{ times [][]time.Duration }

// recentTrips is how many round trips the median and the slowest are of.
const recentTrips = 60

// add keeps the round trips of a pulse.
func (r *recent) add(p *admin.Pulse) {
	if r.times == nil {
		r.times = make([][]time.Duration, len(p.Nodes))
	}
	for i := range p.Nodes {
		if p.Nodes[i].Err != nil {
			continue
		}
		t := append(r.times[i], p.Nodes[i].RoundTrip)
		r.times[i] = t[max(0, len(t)-recentTrips):]
	}
}

// of returns the median and the slowest round trip of a node.
func (r *recent) of(i int) (median, slowest time.Duration) {
	t := slices.Sorted(slices.Values(r.times[i]))
	if len(t) == 0 {
		return 0, 0
	}
	return t[len(t)/2], t[len(t)-1]
}

// healths returns how the nodes are. at is when they answered.
func healths(p *admin.Pulse, r *recent, at time.Time) []nodeHealth {
	all := make([]nodeHealth, len(p.Nodes))
	var clocks []time.Duration
	for i := range p.Nodes {
		all[i] = newHealth(&p.Nodes[i], p.Guarded, at)
		if n := &all[i]; n.known {
			n.median, n.slowest = r.of(i)
			if n.clock = n.pulse.Clock; !n.pulse.Clockless {
				clocks = append(clocks, n.clock)
			}
		}
	}
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

// newHealth returns how one node is.
func newHealth(p *admin.NodePulse, guarded bool, at time.Time) nodeHealth {
	n := nodeHealth{name: p.Node, pulse: p, known: p.Err == nil, health: inService}
	switch s := &p.State; {
	case p.Err != nil:
		n.health, n.why = noAnswer, errorText(p.Err)
	case !guarded:
	case s.Reason == node.ReasonBarred:
		n.health, n.why = refused, "barred: "+node.ReasonText(s.Reason)
	case errors.Is(s.Err, node.ErrConfig):
		n.health, n.why = refused, errorText(s.Err)
	case s.Err != nil:
		n.health, n.why, n.known = noAnswer, errorText(s.Err), false
	case s.Left > 0:
		n.health, n.why, n.until = quarantined, node.ReasonText(s.Reason), at.Add(s.Left)
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
	return strings.Join(strings.Fields(node.ErrorText(err)), " ")
}
