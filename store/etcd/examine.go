package etcd

import (
	"context"
	"fmt"

	"github.com/redlatch/redlatch/node/risk"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

var _ risk.Examiner = (*Node)(nil)

// manyRevisions is how many a database may have before somebody should have compacted it.
const manyRevisions = 1000

// Examine tries the requests of a lock, counts the members and the timers that run, and
// looks for a database that is full or that nobody compacts.
func (n *Node) Examine(ctx context.Context, exam risk.Exam) ([]risk.Finding, error) {
	if _, _, err := n.Identity(ctx); err != nil {
		return nil, err
	}
	found := n.Rights(ctx, exam, "grant the user readwrite on the keys that begin with "+n.store.prefix)
	client, err := n.store.connect(ctx)
	if err != nil {
		return found.All, err
	}
	if r, err := client.MemberList(ctx); err != nil {
		found.Add(risk.Advice, "members", "the members cannot be listed: "+err.Error(), "it is not known how many may fail", "")
	} else if n := len(r.Members); n < 3 {
		found.Add(risk.Advice, "members", fmt.Sprintf("the cluster has %d of 3 members", n), "locks are unavailable if a member fails", "run three members")
	} else {
		found.Add(risk.Fine, "members", fmt.Sprintf("the cluster has %d members, of which %d may fail", n, (n-1)/2), "", "")
	}
	if _, err := client.Get(ctx, n.store.identity(), clientv3.WithRev(1)); same(err, rpctypes.ErrCompacted) {
		found.Add(risk.Fine, "compaction", "the database is compacted", "", "")
	} else if r, last := client.Get(ctx, n.store.identity()); err == nil && last == nil && r.Header.Revision >= manyRevisions {
		found.Add(risk.Advice, "compaction", fmt.Sprintf("none of %d revisions was ever compacted", r.Header.Revision),
			"the database grows with every extension until it is full, and locks are unavailable", "start the members with --auto-compaction-mode=periodic --auto-compaction-retention=1h")
	}
	full := false
	if r, err := client.AlarmList(ctx); err == nil { // only root may ask, with authentication
		for _, a := range r.Alarms {
			full = full || a.Alarm == etcdserverpb.AlarmType_NOSPACE
		}
	}
	if full {
		found.Add(risk.Danger, "space", "the database is full", "locks are unavailable", "compact and defragment it, then disarm the alarm")
	}
	timers, err := client.Get(ctx, n.store.prefix+"t/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return found.All, explain(err)
	}
	found.Add(risk.Fine, "timers", fmt.Sprintf("timers that run, for callers that were refused and left: %d", timers.Count), "", "")
	return found.All, nil
}
