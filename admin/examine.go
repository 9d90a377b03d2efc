package admin

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/inside"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/node"
)

// ExamineOptions are the settings of Examine. The zero value works.
type ExamineOptions struct {
	// Name is the prefix of the key on which the operations of a lock are
	// tried. Choose it where the nodes' user may have locks. Defaults to
	// "redlatch-doctor".
	Name string

	// Samples is how many round trips are measured, from 1 to 1000. Defaults
	// to 50.
	Samples int
}

// Checkup is the result of an examination.
type Checkup struct {
	Nodes    []NodeCheckup
	Findings []node.Finding
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
	// Clock is how far the node's clock is ahead of ours, plus or minus
	// ClockError.
	Clock, ClockError time.Duration
	// State is what its marker says. With the guard off only the membership
	// matters, and with AnyMembership not even that.
	State NodeState
	Err   error

	identity string
	findings []node.Finding
}

// Worst returns the highest severity that was found.
func (c *Checkup) Worst() node.Severity {
	worst := node.Fine
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
func Examine(ctx context.Context, nodes []redlatch.Node, opts redlatch.Options, how ExamineOptions) (*Checkup, error) {
	if how.Name == "" {
		how.Name = "redlatch-doctor"
	}
	if how.Samples == 0 {
		how.Samples = 50
	}
	if how.Samples < 1 || how.Samples > 1000 {
		return nil, &node.ConfigError{Field: "Samples", Value: how.Samples, Bound: "from 1 to 1000"}
	}
	in, err := inside.Assemble(nodes, opts)
	if err != nil {
		return nil, err
	}
	a := &Admin{in, in.Cluster}
	name, err := in.Key(how.Name + "/" + rand.Text())
	if err != nil {
		return nil, err
	}
	exam := node.Exam{Name: name, Guarded: a.c.Guarded(), Window: a.c.Parameters().Window}
	if a.c.Guarded() {
		a.c.AdoptMarkers(ctx)
		exam.Replicas, exam.ReplicaLag = a.c.Parameters().Replicas, a.c.Parameters().ReplicaLag
	}
	seen := make([]NodeCheckup, len(a.c.Members()))
	errs := a.c.Each(ctx, examineLimit, func(ctx context.Context, m *runner.Member) error {
		found := NodeCheckup{Node: m.Name()}
		err := a.examine(ctx, m, &found, exam, how.Samples)
		if err == nil {
			seen[m.Index()] = found
		}
		return err
	})
	up := &Checkup{Nodes: make([]NodeCheckup, len(a.c.Members())), Need: protocol.Quorum(len(a.c.Members()))}
	for i, m := range a.c.Members() {
		up.Nodes[i] = NodeCheckup{Node: m.Name(), Err: errs[i]}
		if errs[i] == nil {
			up.Nodes[i] = seen[i]
			up.Answered++
		}
	}
	a.conclude(up)
	return up, ctx.Err()
}

// examine runs all checks on one node.
func (a *Admin) examine(ctx context.Context, m *runner.Member, n *NodeCheckup, exam node.Exam, samples int) error {
	ask := func() (time.Time, error) {
		reply, err := m.Node().Do(ctx, node.Request{Op: node.OpInspect, Name: exam.Name})
		return reply.Now, err
	}
	if named, ok := m.Node().(node.Identifier); ok {
		id, _, err := named.Identity(ctx)
		if err != nil {
			return err
		}
		n.identity = id
		var right interface{ Forbidden() bool }
		if _, err := ask(); errors.As(err, &right) && right.Forbidden() {
			// It answers, but not for this name. The node's own examination
			// says which permission is missing.
			ask = func() (time.Time, error) {
				_, now, err := named.Identity(ctx)
				return now, err
			}
		}
	}
	times := make([]time.Duration, samples)
	for i := range times {
		sent, start := a.c.Clock().Now(), time.Now()
		now, err := ask()
		if err != nil {
			return err
		}
		times[i] = time.Since(start)
		// The node read its clock during the round trip, so the shortest round
		// trip gives the smallest error.
		if half := times[i] / 2; i == 0 || half < n.ClockError {
			n.Clock, n.ClockError = now.Sub(sent.Add(half)), half
		}
	}
	slices.Sort(times)
	n.Median, n.P99 = times[len(times)/2], times[(len(times)*99-1)/100]
	if _, ok := m.Node().(node.Guarded); ok && a.c.Compares() {
		read := node.Request{Mark: node.MarkRead}
		if !exam.Guarded {
			read.Name = exam.Name // one marker of a cluster's is enough
		}
		n.State = NodeState(a.c.MarkAll(ctx, read, []*runner.Member{m})[0])
	}
	if examined, ok := m.Node().(node.Examiner); ok {
		var err error
		if n.findings, err = examined.Examine(ctx, exam); err != nil {
			return err
		}
	}
	return nil
}

// conclude adds the findings that follow from all nodes' answers.
func (a *Admin) conclude(up *Checkup) {
	add := func(f node.Finding) { up.Findings = append(up.Findings, f) }
	a.judgeList(up, add)
	a.judgeClocks(up, add)
	if a.c.Guarded() {
		judgeTrust(up, add)
	}
	if a.in.AnyMembership {
		add(node.Finding{Severity: node.Advice, Check: "marker", Found: "markers of other lists of nodes are ignored (AnyMembership, --any-membership)",
			Means: "clients with another list that use the same names can hold the same locks", Do: "see that no two applications share the name of a lock, or leave it out"})
	}
	for i := range up.Nodes {
		n := &up.Nodes[i]
		if n.Err != nil {
			add(node.Finding{Severity: node.Warning, Check: "reach", Node: n.Node,
				Found: strings.TrimPrefix(n.Err.Error(), "redlatch: "),
				Means: "it takes no part: one more like it may be one too many",
				Do:    "see that it runs, and that this machine and this user may reach it"})
			continue
		}
		if a.c.Guarded() || errors.Is(n.State.Err, node.ErrConfig) {
			add(judgeMarker(n))
		}
		up.Findings = append(up.Findings, n.findings...)
	}
	a.recommend(up, add)
	slices.SortStableFunc(up.Findings, func(a, b node.Finding) int { return int(b.Severity) - int(a.Severity) })
}

// judgeList checks that there are enough nodes, and that no two are one server.
func (a *Admin) judgeList(up *Checkup, add func(node.Finding)) {
	n := len(up.Nodes)
	switch {
	case up.Answered < up.Need:
		add(node.Finding{Severity: node.Danger, Check: "quorum", Found: fmt.Sprintf("%d of %d nodes answer, and %d are needed", up.Answered, n, up.Need),
			Means: "no lock can be had, extended or released", Do: "bring back a majority of the nodes"})
	case up.Answered < n:
		add(node.Finding{Severity: node.Warning, Check: "quorum", Found: fmt.Sprintf("%d of %d nodes answer, and %d are needed", up.Answered, n, up.Need),
			Means: fmt.Sprintf("locks are had; %d more may fail", up.Answered-up.Need), Do: "bring back those that do not answer"})
	case n == 1:
		add(node.Finding{Severity: node.Advice, Check: "quorum", Found: "there is one node", Means: "when it is away no lock can be had",
			Do: "for locks that outlive a failure use three or five independent servers"})
	case n%2 == 0:
		add(node.Finding{Severity: node.Advice, Check: "quorum", Found: fmt.Sprintf("there are %d nodes", n),
			Means: fmt.Sprintf("they bear the loss of %d, as %d would", n-up.Need, n-1), Do: "use an odd number"})
	default:
		add(node.Finding{Severity: node.Fine, Check: "quorum", Found: fmt.Sprintf("all %d nodes answer; %d may fail", n, n-up.Need)})
	}
	first := map[string]string{}
	for _, at := range up.Nodes {
		switch other := first[at.identity]; {
		case at.Err != nil || at.identity == "":
		case other != "":
			add(node.Finding{Severity: node.Danger, Check: "identity", Node: at.Node, Found: "it is the same server as " + other,
				Means: "one server would be counted twice, and be a majority that is none: clients refuse the list",
				Do:    "list every server once"})
		default:
			first[at.identity] = at.Node
		}
	}
}

// judgeClocks checks that the nodes' clocks agree. The quarantine allows for
// half the window.
func (a *Admin) judgeClocks(up *Checkup, add func(node.Finding)) {
	var clocks []time.Duration
	for _, n := range up.Nodes {
		if n.Err == nil {
			clocks = append(clocks, n.Clock)
		}
	}
	if len(clocks) == 0 {
		return
	}
	median, window := protocol.Median(clocks), a.c.Parameters().Window
	for _, n := range up.Nodes {
		if n.Err != nil || len(clocks) < 2 {
			continue
		}
		f := node.Finding{Check: "clock", Node: n.Node, Do: "keep its clock with a time service (NTP), slewing and not stepping"}
		off := n.Clock - median
		f.Found = fmt.Sprintf("its clock is %v from the others', give or take %v", off.Round(time.Millisecond), n.ClockError.Round(10*time.Microsecond))
		switch d := off.Abs() - n.ClockError; {
		case d > window/2:
			f.Severity = node.Danger
			f.Means = fmt.Sprintf("above half the window of %v it refuses good tokens, and after a loss of data tokens may repeat", window)
		case d > window/10:
			f.Severity = node.Warning
			f.Means = fmt.Sprintf("half the window of %v is what it may be off", window)
		default:
			f.Severity, f.Do = node.Fine, ""
		}
		add(f)
	}
	if d := median.Abs(); d > window {
		add(node.Finding{Severity: node.Advice, Check: "clock", Found: fmt.Sprintf("this machine's clock is %v from the nodes'", (-median).Round(time.Millisecond)),
			Means: "the first lock of every process takes a second round trip", Do: "keep this machine's clock with a time service"})
	}
}

// judgeTrust checks that enough of the nodes that answer are trusted.
func judgeTrust(up *Checkup, add func(node.Finding)) {
	trusted := 0
	for _, n := range up.Nodes {
		if n.Err == nil && n.State.Err == nil && n.State.Trusted {
			trusted++
		}
	}
	if trusted < up.Need && up.Answered >= up.Need {
		add(node.Finding{Severity: node.Danger, Check: "marker", Found: fmt.Sprintf("%d of %d nodes are trusted, and %d are needed", trusted, len(up.Nodes), up.Need),
			Means: "no lock can be had until those that are not have sat out",
			Do:    "run redlatch init, which waits until they are trusted"})
	}
}

// judgeMarker checks that a node is in service.
func judgeMarker(n *NodeCheckup) node.Finding {
	f := node.Finding{Check: "marker", Node: n.Node}
	switch s := n.State; {
	case s.Reason == node.ReasonBarred:
		f.Severity, f.Found = node.Danger, "it is barred, since "+node.ReasonText(s.Reason)
		f.Means, f.Do = "it grants nothing, to whichever list", runner.RunAgain
	case s.Err != nil:
		f.Severity, f.Found = node.Danger, strings.TrimPrefix(s.Err.Error(), "redlatch: ")
		f.Means, f.Do = "this client is refused there: with another list both could hold one lock", "give the list that it is marked for, or take one of the other ways named"
	case s.Left > 0:
		f.Severity, f.Found = node.Warning, fmt.Sprintf("it is in quarantine for %v yet, since %s", s.Left.Round(time.Millisecond), node.ReasonText(s.Reason))
		f.Means, f.Do = "until then it grants nothing", "wait, as redlatch init does"
	case !s.Trusted:
		f.Severity, f.Found = node.Warning, "it is not marked, or restarted since it was"
		f.Means = "it takes no part, and one other node less may fail: the next client with this list marks it, and it is quarantined from then on"
		f.Do = "run redlatch init, which marks it and waits until it is trusted"
	default:
		f.Found = fmt.Sprintf("it is marked for this list and trusted; max TTL %v, window %v", s.Marked.MaxTTL, s.Marked.Window)
	}
	return f
}

// recommend finds times that fit the measurements: a node time limit of ten
// slow round trips, and a TTL in which about ten such limits fit between the
// first try of an extension, after a third of the TTL, and the deadline.
func (a *Admin) recommend(up *Checkup, add func(node.Finding)) {
	var slowest time.Duration
	for _, n := range up.Nodes {
		if n.Err == nil {
			slowest = max(slowest, n.P99)
		}
	}
	if slowest == 0 {
		return
	}
	const least = 50 * time.Millisecond
	up.NodeTimeout = max(least, roundUp(10*slowest))
	up.TTL = max(2*time.Second, roundUp(40*up.NodeTimeout))
	for _, m := range a.c.Members() {
		if slow, ok := m.Node().(node.Slow); ok {
			up.NodeTimeout = max(up.NodeTimeout, slow.TimeLimit())
			up.TTL = max(up.TTL, 2*slow.TimeLimit())
		}
	}
	f := node.Finding{Check: "times", Found: fmt.Sprintf("the slowest round trips take %v: a TTL of %v and a node time limit of %v fit", slowest.Round(10*time.Microsecond), up.TTL, up.NodeTimeout)}
	if most := a.c.Parameters().MaxTTL; up.TTL > most {
		f.Severity, f.Means = node.Warning, fmt.Sprintf("the nodes allow a TTL of %v at the most: locks may be lost to slow answers", most)
		f.Do = "bring client and nodes closer together, or allow longer locks: redlatch init --max-ttl"
	}
	add(f)
}

// roundUp rounds up to one leading digit.
func roundUp(d time.Duration) time.Duration {
	unit := time.Millisecond
	for d >= 10*unit {
		unit *= 10
	}
	return (d + unit - 1) / unit * unit
}
