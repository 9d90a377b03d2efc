package casnode

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/risk"
)

// tryAll tries the requests of a lock under a name that nobody has, and takes them
// back. An error says which one failed.
func (n *Node) tryAll(ctx context.Context, exam risk.Exam) error {
	// If the connection breaks half way, this is what is left, and for how long.
	const left = 5 * time.Second
	s, err := n.read(ctx, MarkerName)
	if err != nil {
		return n.explain(err)
	}
	first := node.Request{Name: exam.Name, Value: rand.Text(), TTL: left, Fencing: node.Fencing{Retention: left, Window: exam.Window, Token: node.Token(s.Now.UnixMicro())}}
	second := first
	second.Value, second.Token, second.Ticket, second.Wait = rand.Text(), first.Token+1, int64(first.Token), true
	// Nothing must be left that would show that locks were kept here.
	last := first
	last.Token, last.Retention = first.Token+2, time.Millisecond
	for _, step := range []struct {
		op  node.Op
		req node.Request
	}{
		{node.OpAcquire, first}, {node.OpExtend, first}, {node.OpAcquire, second},
		{node.OpRelease, second}, {node.OpRelease, first}, {node.OpRelease, last},
	} {
		step.req.Op = step.op
		if _, err := n.Do(ctx, step.req); err != nil {
			return fmt.Errorf("%v: %w", step.op, err)
		}
	}
	return nil
}

// Findings collects what an examination finds on a node.
type Findings struct {
	Node string
	All  []risk.Finding
}

// Add adds a finding.
func (f *Findings) Add(s risk.Severity, check, found, means, do string) {
	f.All = append(f.All, risk.Finding{Severity: s, Check: check, Node: f.Node, Found: found, Means: means, Do: do})
}

// Rights tries the requests of a lock. do says what gives the user the rights for
// them. It returns what it found, to which an Examine adds its own findings.
func (n *Node) Rights(ctx context.Context, exam risk.Exam, do string) *Findings {
	f := &Findings{Node: n.String()}
	if err := n.tryAll(ctx, exam); err != nil {
		f.Add(risk.Danger, "rights", "cannot acquire a lock: "+err.Error(), "locks are unavailable", do)
	} else {
		f.Add(risk.Fine, "rights", "a lock can be taken, extended, waited for and released", "", "")
	}
	return f
}
