package redlatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/lockerrors"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/node"
)

// job is an occurrence of a job, and what the nodes are asked about it.
type job struct {
	c                     *Client
	name, key, occurrence string
	// retention is CompletedRetention, or a longer one that nodes know of the name.
	retention time.Duration
}

// found is what the nodes say about an occurrence.
type found struct {
	protocol.Found
	nodes []node.Result
}

// completed reports whether a node has the record. One is enough: it is a fact.
func (f *found) completed() bool { return f.Completed > 0 }

// partial reports whether a node that answered lacks records that it can get.
func (f *found) partial() bool {
	return f.Sources != 0 && slices.ContainsFunc(f.nodes, func(r node.Result) bool { return lacksRecords(r) })
}

// lacksRecords reports whether a node answered and its memory is not whole.
func lacksRecords(r node.Result) bool {
	return r.Err == nil && r.Reply.Memory != nil && !r.Reply.Memory.Whole
}

// since returns since when a quorum has complete records, but not before the
// oldest; zero if a quorum did not answer.
func (f *found) since(oldest time.Time) time.Time {
	var all []time.Time
	for _, r := range f.nodes {
		if r.Err == nil && r.Reply.Memory != nil {
			all = append(all, r.Reply.Memory.Since)
		}
	}
	quorum := protocol.Quorum(len(f.nodes))
	if len(all) < quorum {
		return time.Time{}
	}
	slices.SortFunc(all, time.Time.Compare)
	if since := all[quorum-1]; since.After(oldest) {
		return since
	}
	return oldest
}

// testimony returns what the nodes have said so far.
func testimony(results []node.Result) []protocol.Said {
	all := make([]protocol.Said, len(results))
	for i, r := range results {
		if r.Err == nil {
			all[i] = protocol.SaidBy(r.Reply)
		}
	}
	return all
}

// check asks the nodes for the record. It waits for the answer of every node that
// answered when it was last asked, and then for enough: that the occurrence is
// completed, or, with the word of enough nodes that have kept their records, that
// it is not. If fewer than a quorum have the record, the others are sent it, so
// that every later caller sees it. It returns an error if a quorum did not
// answer, or did not record it.
func (j *job) check(ctx context.Context) (f found, err error) {
	members := j.c.cluster.Members()
	f.nodes, err = j.c.survey(ctx, j.name, j.request(node.OpCheck), func(results []node.Result) bool {
		if slices.ContainsFunc(members, func(m *runner.Member) bool { return m.Pending(results[m.Index()]) }) {
			return false
		}
		so := protocol.Find(testimony(results), false)
		return someAnswer(results) && (so.Completed > 0 || so.Memory == protocol.Remembered)
	})
	said := testimony(f.nodes)
	f.Found = protocol.Find(said, true)
	j.retention = max(j.retention, protocol.Retention(said))
	if err == nil && f.completed() && f.Completed < protocol.Quorum(len(f.nodes)) {
		err = j.complete(ctx)
	}
	return f, err
}

// complete has a quorum of nodes record that the occurrence is completed.
func (j *job) complete(ctx context.Context) error {
	_, err := j.c.survey(ctx, j.name, j.request(node.OpComplete), someAnswer)
	return err
}

// unknown is the error if too few nodes are sure that the occurrence is not
// completed, and others do not answer.
func (j *job) unknown(f found) error {
	var away, lost, why []string
	for i, r := range f.nodes {
		switch {
		case r.Err != nil:
			away, why = append(away, r.Node), append(why, r.String())
		case !f.Kept.Has(i):
			lost = append(lost, r.Node)
		}
	}
	need := len(f.nodes) - protocol.Quorum(len(f.nodes)) + 1
	quorum := &QuorumError{Op: node.OpCheck, Name: j.name, Need: need, Nodes: f.nodes}
	quorum.countQuarantined()
	return &unknownError{
		fmt.Sprintf("redlatch: unknown whether %q of %q is completed: %d of %d nodes must have kept their records, and %s may have lost them; run it again when %s answers (%s)",
			j.occurrence, j.name, need, len(f.nodes), strings.Join(lost, ", "), strings.Join(away, ", "), strings.Join(why, "; ")),
		quorum,
	}
}

// unknownError is a QuorumError with a text of its own.
type unknownError struct {
	text   string
	quorum *QuorumError
}

func (e *unknownError) Error() string { return e.text }
func (e *unknownError) Unwrap() error { return e.quorum }

// request returns a request about the job's records.
func (j *job) request(op node.Op) node.Request {
	req := node.Request{Op: op, Name: j.key, Occurrence: j.occurrence, Retention: j.retention}
	if j.c.cluster.Guarded() {
		req.Guard = j.c.cluster.Parameters()
	}
	return req
}

// survey asks all nodes, and returns their answers when there are enough, or an
// error if a quorum did not answer.
func (c *Client) survey(ctx context.Context, name string, req node.Request, enough func([]node.Result) bool) ([]node.Result, error) {
	began := c.cluster.Clock().Uptime()
	results := c.cluster.Survey(ctx, req, enough)
	if someAnswer(results) {
		return results, nil
	}
	quorum := &QuorumError{Op: req.Op, Name: name, Need: protocol.Quorum(len(results)), Elapsed: c.cluster.Clock().Uptime() - began, Nodes: results}
	quorum.countQuarantined()
	err := error(quorum)
	for _, r := range results {
		if errors.Is(r.Err, ErrConfig) {
			err = r.Err
		}
	}
	if ctx.Err() != nil {
		err = lockerrors.Ended(ctx, err)
	}
	return results, err
}

// allAnswer waits for all nodes.
func allAnswer([]node.Result) bool { return false }

// someAnswer reports whether a quorum of nodes has answered.
func someAnswer(results []node.Result) bool {
	n := 0
	for _, r := range results {
		if r.Err == nil {
			n++
		}
	}
	return n >= protocol.Quorum(len(results))
}

// copyUnderLock gives nodes that lack records those of the others, unless the
// lock is held: the holder does that too.
func (j *job) copyUnderLock(ctx context.Context) {
	lease, err := j.c.TryLock(ctx, j.name, nil)
	if err != nil {
		return
	}
	if f, err := j.check(ctx); err == nil {
		_ = j.copy(ctx, f)
	}
	_ = lease.Release(context.WithoutCancel(ctx)) // if it fails, the lock expires
}

// copy gives nodes that lack records of the name those of the others, so that
// they are whole. The lock is held: otherwise a record could be completed in
// between whose node lost it before, and which the others did not have yet. A
// node that cannot be reached is given them by the next Once. The error is of
// ctx alone.
func (j *job) copy(ctx context.Context, f found) error {
	if !f.partial() {
		return nil
	}
	limit := 2 * j.c.cluster.NodeTimeout()
	records := make([]map[string]time.Duration, len(f.nodes))
	errs := j.c.cluster.ForEachNode(ctx, limit, func(ctx context.Context, m *runner.Member) (err error) {
		if i := m.Index(); f.Sources.Has(i) && f.nodes[i].Reply.Memory != nil {
			records[i], err = j.read(ctx, m, f.nodes[i].Reply.Memory)
		}
		return err
	})
	read, union := 0, map[string]time.Duration{}
	for i, err := range errs {
		if err != nil || !f.Sources.Has(i) {
			continue
		}
		read++
		for o, left := range records[i] {
			union[o] = max(union[o], left)
		}
	}
	if f.Memory == protocol.Remembered && read <= len(f.nodes)-protocol.Quorum(len(f.nodes)) {
		return ctx.Err() // too few to have them all
	}
	var all []node.Record
	for o, left := range union {
		all = append(all, node.Record{Occurrence: o, Left: left})
	}
	age := time.Duration(0) // how far the records reach back
	if since := f.ages(); len(since) > 0 {
		age = since[min(protocol.Quorum(len(f.nodes)), len(since))-1]
	}
	j.c.cluster.ForEachNode(ctx, limit, func(ctx context.Context, m *runner.Member) error {
		r := f.nodes[m.Index()]
		if !lacksRecords(r) {
			return nil
		}
		return j.adopt(ctx, m, r.Reply, all, age)
	})
	return ctx.Err()
}

// ages returns for how long the sources' records have been complete, the longest
// first.
func (f *found) ages() (all []time.Duration) {
	for i, r := range f.nodes {
		if f.Sources.Has(i) && r.Reply.Memory != nil {
			all = append(all, r.Reply.Now.Sub(r.Reply.Memory.Since))
		}
	}
	slices.Sort(all)
	slices.Reverse(all)
	return all
}

// errForgot says that a node lost its records between two requests.
var errForgot = errors.New("redlatch: the node has lost its records")

// read returns the records of a node whose memory is as it said.
func (j *job) read(ctx context.Context, m *runner.Member, was *node.Memory) (map[string]time.Duration, error) {
	all := map[string]time.Duration{}
	if was.Count == 0 {
		return all, nil
	}
	for req := j.request(node.OpRecords); ; req.Skip += node.MaxRecords {
		r := m.Call(ctx, req)
		switch {
		case r.Err != nil:
			return nil, r.Err
		case r.Reply.Memory == nil || !r.Reply.Memory.Begun.Equal(was.Begun):
			return nil, errForgot
		}
		for _, x := range r.Reply.Memory.Records {
			all[x.Occurrence] = max(all[x.Occurrence], x.Left)
		}
		if len(r.Reply.Memory.Records) < node.MaxRecords {
			return all, nil
		}
	}
}

// adopt gives a node records, and makes its memory whole.
func (j *job) adopt(ctx context.Context, m *runner.Member, was node.Reply, records []node.Record, age time.Duration) error {
	for {
		part := records[:min(len(records), node.MaxRecords)]
		records = records[len(part):]
		req := j.request(node.OpAdopt)
		req.Adopt = &node.Adoption{Begun: was.Memory.Begun, Records: part, Whole: len(records) == 0, Since: was.Now.Add(-age)}
		if r := m.Call(ctx, req); r.Err != nil || r.Reply.Status != node.Granted || len(records) == 0 {
			return r.Err
		}
	}
}
