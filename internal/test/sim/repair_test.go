package sim

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
)

// near is a client's node: a server with no network in between.
type near struct {
	*Server
	trip time.Duration
	down *atomic.Bool
}

func (n near) String() string    { return n.name }
func (n near) Close() error      { return nil }
func (n near) GuardsAlone() bool { return false }
func (n near) Do(ctx context.Context, req node.Request) (node.Reply, error) {
	time.Sleep(n.trip)
	if n.down.Load() {
		return node.Reply{}, errReset
	}
	return n.Server.Do(req)
}

func (n near) Mark(ctx context.Context, req node.MarkRequest) (node.MarkReply, error) {
	time.Sleep(n.trip)
	if n.down.Load() {
		return node.MarkReply{}, errReset
	}
	return n.Server.Mark(req)
}

// stage is three servers, and clients with a network of their own.
type stage struct {
	*testing.T
	opts    redlatch.Options
	servers [3]*Server
	down    [3]*atomic.Bool
}

const stageTTL = 10 * time.Second

func newStage(t *testing.T) *stage {
	s := &stage{T: t, opts: redlatch.Options{Guard: redlatch.GuardOn, TTL: stageTTL, Cluster: redlatch.Cluster{MaxTTL: stageTTL}}}
	for i, name := range []string{"a", "b", "c"} {
		s.servers[i], s.down[i] = NewServer(name, time.Now, true), new(atomic.Bool)
	}
	return s
}

// client returns a client whose requests take so long to each server.
func (s *stage) client(trips ...time.Duration) *redlatch.Client {
	s.Helper()
	nodes := make([]redlatch.Node, len(s.servers))
	for i, server := range s.servers {
		nodes[i] = near{server, trips[i], s.down[i]}
	}
	return locktest.NewClient(s, nodes, s.opts)
}

// near returns a client that is near to all servers.
func (s *stage) near() *redlatch.Client {
	return s.client(time.Millisecond, 2*time.Millisecond, 3*time.Millisecond)
}

// quarantine waits until a server that has lost its data is trusted again, and
// every lease was extended twice after that.
func (s *stage) quarantine() { time.Sleep(3 * stageTTL) }

// refused has a writer ask once.
func (s *stage) refused(writer *redlatch.Client) {
	s.Helper()
	if _, err := writer.TryLock(s.Context(), "doc", nil); !errors.Is(err, redlatch.ErrHeld) {
		s.Errorf("the writer: %v, want ErrHeld", err)
	}
}

// TestLeaseIsRepairedThoughOthersRaisedTheFence has a server lack a lease, and
// its fence be above the lease's token. Then another server loses its data. A
// quorum is up all the time, so that the lease must live.
func TestLeaseIsRepairedThoughOthersRaisedTheFence(t *testing.T) {
	stories := map[string]func(s *stage, opts redlatch.LockOptions) *redlatch.Lease{
		"a writer was refused after a server lost its data": func(s *stage, opts redlatch.LockOptions) *redlatch.Lease {
			l := locktest.MustLock(s, s.near(), "doc", opts)
			s.down[0].Store(true)
			s.servers[0].restartEmpty()
			time.Sleep(time.Second)
			s.down[0].Store(false)
			writer := s.near()
			for range 30 { // one of these comes before the repair
				s.refused(writer)
				time.Sleep(time.Second)
			}
			s.quarantine()
			s.servers[1].restartEmpty()
			return l
		},
		"a rolling restart, and a writer that tries now and then": func(s *stage, opts redlatch.LockOptions) *redlatch.Lease {
			l := locktest.MustLock(s, s.near(), "doc", opts)
			writer := s.near()
			for _, server := range s.servers {
				server.restartEmpty()
				// A try that is refused occupies a server that lacks the lease for
				// a moment. The tries are not in step with the extensions: else all
				// of these may come in such a moment, and none repairs.
				for range 100 {
					s.refused(writer)
					time.Sleep(310 * time.Millisecond)
				}
			}
			return l
		},
		"a waiting writer took the third server first": func(s *stage, opts redlatch.LockOptions) *redlatch.Lease {
			first, writer := s.client(time.Millisecond, time.Millisecond, 60*time.Millisecond), s.client(60*time.Millisecond, 60*time.Millisecond, time.Millisecond)
			ctx, cancel := context.WithCancel(s.Context())
			s.Cleanup(cancel)
			go writer.Lock(ctx, "doc", nil)
			l := locktest.MustLock(s, first, "doc", opts)
			s.quarantine()
			s.servers[0].restartEmpty()
			return l
		},
		"a server was cut off for longer than the TTL": func(s *stage, opts redlatch.LockOptions) *redlatch.Lease {
			l := locktest.MustLock(s, s.near(), "doc", opts)
			time.Sleep(time.Second) // the last server has the lock, too
			s.down[2].Store(true)
			time.Sleep(2 * stageTTL)
			s.down[2].Store(false)
			time.Sleep(stageTTL)
			s.servers[0].restartEmpty()
			return l
		},
	}
	shares := map[string]redlatch.LockOptions{"writer": {}, "reader": {Shared: true}, "slot": {Slots: 2}}
	for name, story := range stories {
		for share, opts := range shares {
			t.Run(fmt.Sprintf("%s/%s", name, share), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newStage(t)
					once(t, s.near())
					l := story(s, opts)
					time.Sleep(2 * stageTTL)
					if err := l.Err(); err != nil {
						t.Errorf("the lease: %v", err)
					}
				})
			})
		}
	}
}
