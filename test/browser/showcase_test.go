package browser

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/memory"
)

// actor is a node in memory that plays a server: it has the name of one, takes
// its time, and can be in quarantine.
type actor struct {
	*memory.Node
	name  string
	takes time.Duration

	mu    sync.Mutex
	until time.Time // the end of its quarantine
}

func (a *actor) String() string    { return a.name }
func (a *actor) GuardsAlone() bool { return false }

func (a *actor) Do(ctx context.Context, req node.Request) (node.Reply, error) {
	time.Sleep(a.takes)
	req.Guard = nil
	return a.Node.Do(ctx, req)
}

func (a *actor) Mark(_ context.Context, req node.MarkRequest) (node.MarkReply, error) {
	time.Sleep(a.takes)
	a.mu.Lock()
	defer a.mu.Unlock()
	r := node.MarkReply{Status: node.Granted, Now: time.Now(), Marker: node.Marker{Guard: req.Guard}, TrustedFrom: time.Now().Add(-time.Hour)}
	if left := time.Until(a.until); left > 0 {
		r.Status, r.Left, r.Reason = node.Quarantined, left, node.ReasonChanged
	}
	return r, nil
}

// showcase is a quorum on which much happens.
type showcase struct {
	actors []*actor
	client *redlatch.Client
	next   int
}

func newShowcase(t *testing.T) *showcase {
	t.Helper()
	s := &showcase{}
	var nodes []redlatch.Node
	for i, takes := range []int{1100, 3200, 2300, 14000, 4300} {
		a := &actor{Node: memory.New(nil), name: fmt.Sprintf("redis://redis-%c:6379", 'a'+i), takes: time.Duration(takes) * time.Microsecond}
		s.actors, nodes = append(s.actors, a), append(nodes, a)
	}
	c, err := redlatch.New(nodes, nil)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	s.client = c
	return s
}

// ask sends a request to all nodes.
func (s *showcase) ask(t *testing.T, req node.Request) {
	t.Helper()
	for _, a := range s.actors {
		if _, err := a.Node.Do(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
}

// value returns a value on the nodes for an owner.
func (s *showcase) value(owner string) string {
	s.next++
	return fmt.Sprintf("%032x:%s", s.next, owner)
}

// holds has an owner hold a lock since some time.
func (s *showcase) holds(t *testing.T, name, owner string, since, ttl time.Duration, share node.Share) node.Request {
	t.Helper()
	req := node.Request{
		Op: node.OpAcquire, Share: share, Name: name, Value: s.value(owner), TTL: ttl,
		Fencing: node.Fencing{Token: node.Token(time.Now().Add(-since).UnixMicro()), Window: 48 * time.Hour, Retention: 200 * time.Hour},
	}
	s.ask(t, req)
	return req
}

// waits has an owner wait for a lock.
func (s *showcase) waits(t *testing.T, name, owner string, since time.Duration, share node.Share) {
	t.Helper()
	at := time.Now().Add(-since)
	s.ask(t, node.Request{
		Op: node.OpAcquire, Share: share, Name: name, Value: s.value(owner), TTL: time.Minute, Waiting: node.Waiting{Wait: true, Ticket: at.UnixMicro()}, Fencing: node.Fencing{Token: node.Token(time.Now().UnixMicro()), Window: 48 * time.Hour, Retention: 200 * time.Hour},
	})
}

// play has things happen. seen waits until the page shows what it is given.
func (s *showcase) play(t *testing.T, seen func(what string)) {
	t.Helper()
	reader, slot := node.Share{Mode: node.Shared}, node.Share{Mode: node.Slotted, Slots: 3}
	first := s.holds(t, "deploy/frontend", "ci-7/30211/deploy.sh", 4*time.Minute, 80*time.Second, node.Share{})
	s.holds(t, "nightly-report", "batch-2/812/report.py", 11*time.Hour, 76*time.Second, node.Share{})
	seen("report.py")
	first.Op = node.OpRelease
	s.ask(t, first)
	seen("released by")
	s.holds(t, "backups", "db1/812/rsync", 34*time.Second, 88*time.Second, reader)
	s.holds(t, "backups", "db2/90/rsync", 5*time.Second, 97*time.Second, reader)
	s.holds(t, "deploy/backend", "ci-2/5120/deploy.sh", 63*time.Second, 91*time.Second, node.Share{})
	s.holds(t, "deploy/frontend", "ci-4/2218/deploy.sh", 12*time.Second, 93*time.Second, node.Share{})
	s.holds(t, "scheduler", "app-1/1/scheduler", 27*time.Hour, 89*time.Second, node.Share{})
	s.holds(t, "tenant/1042/invoice", "worker-3/77/invoice", 2*time.Second, 98*time.Second, node.Share{})
	s.holds(t, "tenant/1043/invoice", "worker-9/77/invoice", 7*time.Second, 95*time.Second, node.Share{})
	s.holds(t, "tenant/\u202e44001/ecioevni", "worker-5/31/invoice", 4*time.Second, 96*time.Second, node.Share{})
	for i, owner := range []string{"m4/77/transcode", "m1/4021/transcode", "m2/615/transcode"} {
		s.holds(t, "transcode", owner, time.Duration(163-50*i)*time.Second, 94*time.Second, slot)
	}
	s.waits(t, "deploy/frontend", "ci-1/871/deploy.sh", 11*time.Second, node.Share{})
	s.waits(t, "deploy/frontend", "ci-9/4410/rollback.sh", 3*time.Second, node.Share{})
	s.waits(t, "backups", "db1/900/backup.sh", 20*time.Second, node.Share{})
	s.waits(t, "backups", "db3/14/rsync", 6*time.Second, reader)
	for i := range 9 {
		s.waits(t, "transcode", fmt.Sprintf("m%d/99/transcode", i), time.Duration(30-i)*time.Second, slot)
	}
	seen("worker-5")
	s.actors[3].mu.Lock()
	s.actors[3].until = time.Now().Add(90 * time.Second)
	s.actors[3].mu.Unlock()
	seen("quarantined for")
}
