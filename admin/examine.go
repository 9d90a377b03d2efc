package admin

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/clientaccess"
	"github.com/redlatch/redlatch/internal/optional"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/lockerrors"
	"github.com/redlatch/redlatch/node/risk"
)

// ExamineOptions are the settings of Examine. The zero value works.
type ExamineOptions struct {
	// Name is the prefix of the key on which the operations of a lock are
	// tried. Choose it where the nodes' user may have locks. Defaults to
	// "redlatch-doctor".
	Name string

	// Samples is how many round trips are measured on each node, from 1 to
	// 1000, one every 25 ms. Slow nodes are measured less often, so that it
	// takes 8 s at most. Defaults to 200, which take 5 s.
	Samples int

	// Progress is called after each round trip on any node, if it is set.
	Progress func()
}

// Checkup is the result of an examination.
type Checkup struct {
	Nodes []NodeCheckup
	// Findings has the worst first.
	Findings []risk.Finding
	// Answered is how many nodes answered. Need is the quorum.
	Answered, Need int
	// TTL and NodeTimeout are what is recommended for the measured times; 0 if
	// none were measured.
	TTL, NodeTimeout time.Duration
}

// NodeCheckup is what was measured on one node.
type NodeCheckup struct {
	Node string
	// Median and P99 are of the round trip times.
	Median, P99 time.Duration
	// Slow is what a slow round trip takes: the upper quartile of the slowest of
	// each ten in a row. One hiccup does not change it.
	Slow time.Duration
	// Clock is how far the node's clock is ahead of ours, plus or minus
	// ClockError.
	Clock, ClockError time.Duration
	// Clockless says that the node has no clock, and Clock means nothing.
	Clockless bool
	// State is what its marker says. With the guard off only the membership
	// matters, and with AnyMembership not even that.
	State NodeState
	Err   error

	identity string
	findings []risk.Finding
}

// Worst returns the highest severity that was found.
func (c *Checkup) Worst() risk.Severity {
	worst := risk.Fine
	for _, f := range c.Findings {
		worst = max(worst, f.Severity)
	}
	return worst
}

// examineLimit limits the examination of one node.
const examineLimit = 15 * time.Second

// Examine looks for risks to locks on nodes, and measures which times fit them.
// It changes no lock and no node, and leaves the nodes open. Unlike New it does
// not refuse a server that is listed twice: it reports it.
func Examine(ctx context.Context, nodes []redlatch.Node, opts *redlatch.Options, examine *ExamineOptions) (*Checkup, error) {
	how := optional.Value(examine)
	how.Name = cmp.Or(how.Name, "redlatch-doctor")
	how.Samples = cmp.Or(how.Samples, 200)
	if how.Samples < 1 || how.Samples > 1000 {
		return nil, &node.ConfigError{Field: "Samples", Value: how.Samples, Bound: "between 1 and 1000"}
	}
	idle := optional.Value(opts)
	clientaccess.SetIdle(&idle)
	client, err := redlatch.New(nodes, &idle)
	if err != nil {
		return nil, err
	}
	a := New(client)
	name, err := a.in.Key(how.Name + "/" + rand.Text())
	if err != nil {
		return nil, err
	}
	exam := risk.Exam{Name: name, Guarded: a.c.Guarded(), Window: a.c.Parameters().Window}
	if a.c.Guarded() {
		a.c.AdoptMarkers(ctx, "")
		exam.Replicas, exam.ReplicaLag = a.c.Parameters().Replicas, a.c.Parameters().ReplicaLag
	}
	found, errs := ask(ctx, a.c, examineLimit, func(ctx context.Context, m *runner.Member) (NodeCheckup, error) {
		n := NodeCheckup{Node: m.Name()}
		err := a.examine(ctx, m, &n, exam, how)
		return n, err
	})
	up := &Checkup{Nodes: found, Need: protocol.Quorum(len(found))}
	for i, m := range a.c.Members() {
		if errs[i] != nil {
			up.Nodes[i] = NodeCheckup{Node: m.Name(), Err: errs[i]}
			continue
		}
		up.Answered++
	}
	a.conclude(up)
	return up, ctx.Err()
}

// examine runs all checks on one node.
func (a *Admin) examine(ctx context.Context, m *runner.Member, n *NodeCheckup, exam risk.Exam, how ExamineOptions) error {
	if named, ok := m.Node().(node.Identifier); ok {
		id, _, err := named.Identity(ctx)
		if err != nil {
			return err
		}
		n.identity = id
	}
	if err := a.measure(ctx, m, n, exam.Name, how); err != nil {
		return err
	}
	if _, ok := m.Node().(node.Guarded); ok && a.c.Compares() {
		read := node.MarkRequest{Mark: node.MarkRead}
		if !exam.Guarded {
			read.Name = exam.Name // one marker of a cluster's is enough
		}
		n.State = public(a.c.MarkAll(ctx, read, []*runner.Member{m}, nil))[0]
	}
	if examined, ok := m.Node().(risk.Examiner); ok {
		var err error
		if n.findings, err = examined.Examine(ctx, exam); err != nil {
			return err
		}
	}
	return nil
}

// conclude adds the findings that follow from all nodes' answers.
func (a *Admin) conclude(up *Checkup) {
	add := func(f risk.Finding) { up.Findings = append(up.Findings, f) }
	a.judgeList(up, add)
	a.judgeClocks(up, add)
	if a.c.Guarded() {
		judgeTrust(up, add)
	}
	if a.in.AnyMembership {
		add(risk.Finding{Severity: risk.Advice, Check: "marker", Found: "markers of other memberships are ignored (AnyMembership, --any-membership)",
			Means: "clients with another membership can hold the same locks", Do: "see that no two applications share the name of a lock, or remove the option"})
	}
	for i := range up.Nodes {
		n := &up.Nodes[i]
		if n.Err != nil {
			add(risk.Finding{Severity: risk.Warning, Check: "reach", Node: n.Node,
				Found: lockerrors.Text(n.Err),
				Means: "another failure may lose the quorum",
				Do:    "see that it runs, and that this machine and this user may reach it"})
			continue
		}
		if a.c.Guarded() || errors.Is(n.State.Err, node.ErrConfig) {
			add(judgeMarker(n))
		}
		up.Findings = append(up.Findings, n.findings...)
	}
	a.recommend(up, add)
	slices.SortStableFunc(up.Findings, func(a, b risk.Finding) int { return int(b.Severity) - int(a.Severity) })
}

// judgeList checks that there are enough nodes, and that no two are one server.
func (a *Admin) judgeList(up *Checkup, add func(risk.Finding)) {
	n := len(up.Nodes)
	switch {
	case up.Answered < up.Need:
		add(risk.Finding{Severity: risk.Danger, Check: "quorum", Found: fmt.Sprintf("%d of %d nodes answer; quorum is %d", up.Answered, n, up.Need),
			Means: "locks are unavailable", Do: "bring back a majority of the nodes"})
	case up.Answered < n:
		add(risk.Finding{Severity: risk.Warning, Check: "quorum", Found: fmt.Sprintf("%d of %d nodes answer; quorum is %d", up.Answered, n, up.Need),
			Means: tolerance(up.Answered - up.Need), Do: "bring back the nodes that do not answer"})
	case n == 1:
		add(risk.Finding{Severity: risk.Advice, Check: "quorum", Found: "there is one node", Means: "single point of failure",
			Do: "for locks that outlive a failure use three or five independent servers"})
	case n%2 == 0:
		add(risk.Finding{Severity: risk.Advice, Check: "quorum", Found: fmt.Sprintf("there are %d nodes", n),
			Means: fmt.Sprintf("they tolerate the loss of %d, as %d would", n-up.Need, n-1), Do: "use an odd number"})
	default:
		add(risk.Finding{Severity: risk.Fine, Check: "quorum", Found: fmt.Sprintf("all %d nodes answer; %d may fail", n, n-up.Need)})
	}
	first := map[string]string{}
	for _, at := range up.Nodes {
		switch other := first[at.identity]; {
		case at.Err != nil || at.identity == "":
		case other != "":
			add(risk.Finding{Severity: risk.Danger, Check: "identity", Node: at.Node, Found: "it is the same server as " + other,
				Means: "one server would count twice towards the quorum: clients refuse the membership",
				Do:    "list every server once"})
		default:
			first[at.identity] = at.Node
		}
	}
}

// tolerance says how many more nodes may fail.
func tolerance(more int) string {
	if more == 0 {
		return "working; no further failure tolerated"
	}
	return fmt.Sprintf("working; %d more may fail", more)
}

// judgeClocks checks that the nodes' clocks agree. The quarantine allows for
// half the window.
func (a *Admin) judgeClocks(up *Checkup, add func(risk.Finding)) {
	var clocks []time.Duration
	for _, n := range up.Nodes {
		if n.Err == nil && !n.Clockless {
			clocks = append(clocks, n.Clock)
		}
	}
	if len(clocks) == 0 {
		return
	}
	median, window := protocol.Median(clocks), a.c.Parameters().Window
	for _, n := range up.Nodes {
		if n.Err != nil || n.Clockless || len(clocks) < 2 {
			continue
		}
		f := risk.Finding{Check: "clock", Node: n.Node, Do: "keep its clock with a time service (NTP), slewing and not stepping"}
		off := n.Clock - median
		f.Found = fmt.Sprintf("its clock is %v from the others', give or take %v", off.Round(time.Millisecond), n.ClockError.Round(10*time.Microsecond))
		switch f.Severity = clockSeverity(off.Abs()-n.ClockError, window); f.Severity {
		case risk.Danger:
			f.Means = fmt.Sprintf("above half the window of %v it refuses good tokens, and after a loss of data tokens may repeat", window)
		case risk.Warning:
			f.Means = fmt.Sprintf("half the window of %v is what it may be off", window)
		default:
			f.Do = ""
		}
		add(f)
	}
	if d := median.Abs(); d > window {
		add(risk.Finding{Severity: risk.Advice, Check: "clock", Found: fmt.Sprintf("this machine's clock is %v from the nodes'", (-median).Round(time.Millisecond)),
			Means: "the first lock of every process takes a second round trip", Do: "keep this machine's clock with a time service"})
	}
}

// clockSeverity says how bad it is that a clock differs by this much.
func clockSeverity(off, window time.Duration) risk.Severity {
	switch {
	case off > window/2:
		return risk.Danger
	case off > window/10:
		return risk.Warning
	}
	return risk.Fine
}

// judgeTrust checks that enough of the nodes that answer are trusted.
func judgeTrust(up *Checkup, add func(risk.Finding)) {
	trusted := 0
	for _, n := range up.Nodes {
		if n.Err == nil && n.State.Err == nil && n.State.Trusted {
			trusted++
		}
	}
	if trusted < up.Need && up.Answered >= up.Need {
		add(risk.Finding{Severity: risk.Danger, Check: "marker", Found: fmt.Sprintf("%d of %d nodes are trusted; quorum is %d", trusted, len(up.Nodes), up.Need),
			Means: "locks are unavailable until quarantine ends",
			Do:    "run redlatch init, which waits until they are trusted"})
	}
}

// judgeMarker checks that a node is in service.
func judgeMarker(n *NodeCheckup) risk.Finding {
	f := risk.Finding{Check: "marker", Node: n.Node}
	switch s := n.State; {
	case s.Reason == node.ReasonBarred:
		f.Severity, f.Found = risk.Danger, "barred: "+lockerrors.Reason(s.Reason)
		f.Means, f.Do = "it grants nothing", runner.RunAgain
	case s.Err != nil:
		f.Severity, f.Found = risk.Danger, lockerrors.Text(s.Err)
		f.Means, f.Do = "it refuses this client: with two memberships both could hold one lock", "give the membership that it is marked for, or do as the message says"
	case s.Left > 0:
		f.Severity, f.Found = risk.Warning, lockerrors.Quarantine(s.Left, s.Reason)
		f.Means, f.Do = "until then it grants nothing", "wait, as redlatch init does"
	case !s.Trusted:
		f.Severity, f.Found = risk.Warning, "not marked, or restarted since"
		f.Means = "one failure less is tolerated: the next client with this membership marks it, and its quarantine begins"
		f.Do = "run redlatch init, which marks it and waits until it is trusted"
	default:
		f.Found = fmt.Sprintf("marked for this membership and trusted; max TTL %v, window %v", s.Marked.MaxTTL, s.Marked.Window)
	}
	return f
}
