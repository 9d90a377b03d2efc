package casnode

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/node"
)

// primary is a database whose place a replica can take.
type primary struct {
	*Node
	name  string
	cut   atomic.Bool
	delay atomic.Int64 // nanoseconds
}

func (p *primary) String() string    { return p.name }
func (p *primary) GuardsAlone() bool { return true }

func (p *primary) Do(ctx context.Context, req node.Request) (node.Reply, error) {
	return reach(p, func() (node.Reply, error) { return p.Node.Do(ctx, req) })
}

func (p *primary) Mark(ctx context.Context, req node.MarkRequest) (node.MarkReply, error) {
	return reach(p, func() (node.MarkReply, error) { return p.Node.Mark(ctx, req) })
}

func reach[R any](p *primary, execute func() (R, error)) (reply R, err error) {
	if p.cut.Load() {
		return reply, fmt.Errorf("cut off (%w)", node.ErrUnsent)
	}
	time.Sleep(time.Duration(p.delay.Load()))
	return execute()
}

// databases are tables, and clients of nodes over them.
type databases []*table

func newDatabases(n int) databases {
	all := make(databases, n)
	for i := range all {
		all[i] = newTable(time.Now)
		all[i].server = fmt.Sprint("one of ", i)
	}
	return all
}

// clientAs returns a client that writes the addresses in its own way. All but
// "node" list them in another order, too.
func (d databases) clientAs(t *testing.T, how string, fresh bool) (*redlatch.Client, []*primary) {
	var nodes []redlatch.Node
	var primaries []*primary
	for i, s := range d {
		p := &primary{Node: New(s, nil), name: fmt.Sprint(how, " ", i)}
		nodes, primaries = append(nodes, p), append(primaries, p)
	}
	if how != "node" {
		slices.Reverse(nodes)
	}
	c, err := redlatch.New(nodes, &redlatch.Options{Cluster: redlatch.Cluster{Membership: "databases", MaxTTL: 20 * time.Second}, AssumeFresh: fresh})
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c, primaries
}

// promote has a replica with another identity take a table's place. failBack has
// the former primary come back as it was.
func (s *table) promote() (failBack func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows, server := maps.Clone(s.rows), s.server
	s.server = "two of " + server
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.rows, s.server = maps.Clone(rows), server
	}
}

// replace is promote by a server that is empty.
func (s *table) replace() (failBack func()) {
	defer func() { s.mu.Lock(); clear(s.rows); s.mu.Unlock() }()
	return s.promote()
}

func use(t *testing.T, c *redlatch.Client, name string, ttl time.Duration) *redlatch.Lease {
	t.Helper()
	l, err := c.Lock(t.Context(), name, &redlatch.LockOptions{TTL: ttl, NoKeepAlive: true, Wait: time.Minute})
	must(t, err)
	return l
}

// TestServerThatFailedBackIsMarkedAgain has a replica take the place of a single
// database, a lock be acquired there, and the former primary come back as it was.
// A client that has seen the replica marks it again, and from then on nobody is
// granted the lock in a whole quarantine.
func TestServerThatFailedBackIsMarkedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDatabases(1)
		y, _ := d.clientAs(t, "node", true)
		use(t, y, "first", time.Second).Release(t.Context())
		failBack := d[0].promote()
		z, _ := d.clientAs(t, "node", false)
		use(t, z, "second", time.Second).Release(t.Context()) // after the replica's quarantine
		lease := use(t, y, "job", 20*time.Second)
		failBack()
		late, _ := d.clientAs(t, "node", false) // which knows nothing
		for _, c := range []*redlatch.Client{z, late} {
			if _, err := c.TryLock(t.Context(), "job", &redlatch.LockOptions{TTL: time.Second}); !errors.Is(err, redlatch.ErrQuarantine) {
				exclusion.Never(t, "a second holder beside one with %v left: %v", lease.Remaining(), err)
			}
		}
		start := time.Now()
		use(t, z, "job", time.Second)
		if took := time.Since(start); took < 20*time.Second {
			t.Errorf("the server that failed back granted after %v, which is no whole quarantine", took)
		}
	})
}

// TestClientThatWritesAddressesDifferentlyHearsThatAServerFailedBack has one of three
// databases be swapped out, for its replica or for an empty server, and back. The
// client that comes then writes the addresses differently, in another order.
func TestClientThatWritesAddressesDifferentlyHearsThatAServerFailedBack(t *testing.T) {
	for name, swap := range map[string]func(s *table, serve func()) (failBack func()){
		"a replica": func(s *table, serve func()) func() {
			defer serve()
			return s.promote()
		},
		"an empty server": func(s *table, serve func()) func() {
			defer serve()
			return s.replace()
		},
		"an empty server, out and in again": func(s *table, serve func()) func() {
			back := s.replace()
			serve()
			in := s.promote()
			back()
			serve()
			return in
		},
		"an empty server, twice": func(s *table, serve func()) func() {
			back := s.replace()
			serve()
			s.replace()
			serve()
			return back
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDatabases(3)
				y, nodes := d.clientAs(t, "node", true)
				x, _ := d.clientAs(t, "address", false)
				use(t, y, "first", time.Second).Release(t.Context())
				failBack := swap(d[1], func() {
					use(t, x, "second", time.Second).Release(t.Context())
					time.Sleep(time.Minute) // its quarantine
					use(t, y, "third", time.Second).Release(t.Context())
					use(t, x, "third", time.Second).Release(t.Context())
				})
				nodes[0].cut.Store(true)
				lease := use(t, y, "job", 20*time.Second) // on the other server and the third
				failBack()
				z, others := d.clientAs(t, "name", false)
				others[0].delay.Store(int64(50 * time.Millisecond)) // the one that knows answers last
				others[2].cut.Store(true)
				_, err := z.TryLock(t.Context(), "job", &redlatch.LockOptions{TTL: time.Second})
				if err == nil {
					exclusion.Never(t, "two holders: the first has %v left", lease.Remaining())
				}
				if !errors.Is(err, redlatch.ErrQuarantine) || !strings.Contains(fmt.Sprint(err), "name 1: quarantined") {
					t.Errorf("why there is no quorum is not said: %v", err)
				}
			})
		})
	}
}
