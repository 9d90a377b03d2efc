package sim

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/nodestate"
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

// TestServersThatForgotComeBackByUseAlone has one server of three forget in
// each way, while it is used in each way. When its quarantine is over it must
// replace another that fails.
func TestServersThatForgotComeBackByUseAlone(t *testing.T) {
	forget := map[string]func(s *Server){
		"flushed":                 func(s *Server) { s.flush() },
		"restarted empty":         func(s *Server) { s.restartEmpty() },
		"restarted with its data": func(s *Server) { s.restart(s.save()) },
	}
	const ttl, window = 10 * time.Second, time.Second
	uses := map[string]func(t *testing.T, client func() *redlatch.Client) (check func()){
		"locks that come and go": func(t *testing.T, client func() *redlatch.Client) func() {
			c := client()
			for range 300 {
				once(t, c)
				time.Sleep(100 * time.Millisecond)
			}
			return func() { once(t, c) }
		},
		"one lock and the end": func(t *testing.T, client func() *redlatch.Client) func() {
			time.Sleep(2 * time.Second)
			c := client()
			once(t, c)
			c.Close()
			time.Sleep(40 * time.Second)
			return func() { once(t, client()) }
		},
		"one lock that is held": func(t *testing.T, client func() *redlatch.Client) func() {
			l, err := client().Lock(t.Context(), "held", nil)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(40 * time.Second)
			return func() {
				time.Sleep(2 * ttl)
				if err := l.Err(); err != nil {
					t.Errorf("the lease: %v", err)
				}
			}
		},
	}
	for how, forget := range forget {
		for name, use := range uses {
			t.Run(how+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var nodes []near
					for i, name := range []string{"a", "b", "c"} {
						// The server that forgets answers before the others
						// have reported with which parameters they are marked.
						nodes = append(nodes, near{NewServer(name, time.Now, true), time.Duration(2+3*i) * time.Millisecond, new(atomic.Bool)})
					}
					opts := redlatch.Options{Guard: redlatch.GuardOn, TTL: ttl, Cluster: redlatch.Cluster{MaxTTL: ttl}}
					client := func() *redlatch.Client {
						c, err := redlatch.New([]redlatch.Node{nodes[0], nodes[1], nodes[2]}, &opts)
						if err != nil {
							t.Fatal(err)
						}
						t.Cleanup(func() { c.Close() })
						return c
					}
					once(t, client())
					opts.MaxTTL = 0 // the others read them from the markers
					time.Sleep(time.Second)
					time.AfterFunc(time.Second, func() { forget(nodes[0].Server) })
					check := use(t, client)
					if s := nodes[0].save(); s.Marker.ID != s.ID || s.Marker.TrustedFrom.After(time.Now()) {
						t.Fatalf("the server %s is marked %+v", s.ID, s.Marker)
					}
					nodes[1].down.Store(true)
					check()
				})
			})
		}
	}
}

// once takes a lock and releases it.
func once(t *testing.T, c *redlatch.Client) {
	t.Helper()
	l, err := c.Lock(t.Context(), "job", nil)
	if err != nil {
		t.Fatal(err)
	}
	l.Release(t.Context()) // a server may have forgotten it in between
}

// TestReleaseDoesNotShowThatANodeIsBack has a node lose only its marker, while
// too few others answer to mark it again.
func TestReleaseDoesNotShowThatANodeIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var nodes []redlatch.Node
		var all []near
		for _, name := range []string{"a", "b", "c"} {
			all = append(all, near{NewServer(name, time.Now, true), time.Millisecond, new(atomic.Bool)})
			nodes = append(nodes, all[len(all)-1])
		}
		c, err := redlatch.New(nodes, &redlatch.Options{Guard: redlatch.GuardOn})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		l, err := c.Lock(t.Context(), "held", &redlatch.LockOptions{NoKeepAlive: true})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		all[0].mu.Lock()
		all[0].state.Marker = nodestate.Marker{}
		all[0].mu.Unlock()
		all[2].down.Store(true)
		if _, err := c.TryLock(t.Context(), "job", nil); err == nil {
			t.Fatal("an unmarked node has granted")
		}
		l.Release(t.Context())
		time.Sleep(time.Second)
		out := admin.New(c).Quarantined()
		if len(out) != 1 || out[0].Node != "a" || out[0].Reply.Value != node.ReasonUnmarked {
			t.Errorf("after the release these are known to take no part: %v", out)
		}
	})
}
