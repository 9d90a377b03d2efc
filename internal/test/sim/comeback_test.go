package sim

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/nodestate"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
)

// TestServersThatForgotComeBackByUseAlone has one server of three forget in
// each way, while it is used in each way. When its quarantine is over it must
// replace another that fails.
func TestServersThatForgotComeBackByUseAlone(t *testing.T) {
	forget := map[string]func(s *Server){
		"flushed":                 (*Server).flush,
		"restarted empty":         (*Server).restartEmpty,
		"restarted with its data": func(s *Server) { s.restart(s.save()) },
	}
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
			l := locktest.MustLock(t, client(), "held", redlatch.LockOptions{})
			time.Sleep(40 * time.Second)
			return func() {
				time.Sleep(2 * stageTTL)
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
					s := newStage(t)
					// The server that forgets answers before the others have
					// reported with which parameters they are marked.
					client := func() *redlatch.Client { return s.client(2*time.Millisecond, 5*time.Millisecond, 8*time.Millisecond) }
					once(t, client())
					s.opts.MaxTTL = 0 // the others read them from the markers
					time.Sleep(time.Second)
					time.AfterFunc(time.Second, func() { forget(s.servers[0]) })
					check := use(t, client)
					if is := s.servers[0].save(); is.Marker.ID != is.ID || is.Marker.TrustedFrom.After(time.Now()) {
						t.Fatalf("the server %s is marked %+v", is.ID, is.Marker)
					}
					s.down[1].Store(true)
					check()
				})
			})
		}
	}
}

// once takes a lock and releases it. A server may have forgotten it in between.
func once(t *testing.T, c *redlatch.Client) {
	t.Helper()
	locktest.MustLock(t, c, "job", redlatch.LockOptions{}).Release(t.Context())
}

// TestReleaseDoesNotShowThatANodeIsBack has a node lose only its marker, while
// too few others answer to mark it again.
func TestReleaseDoesNotShowThatANodeIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		c := s.near()
		l := locktest.MustLock(t, c, "held", redlatch.LockOptions{NoKeepAlive: true})
		time.Sleep(time.Second)
		s.servers[0].change(func(state *nodestate.Server) { state.Marker = nodestate.Marker{} })
		s.down[2].Store(true)
		if _, err := c.TryLock(t.Context(), "job", nil); err == nil {
			t.Fatal("an unmarked node has granted")
		}
		l.Release(t.Context())
		time.Sleep(time.Second)
		out := admin.New(c).Quarantined()
		if len(out) != 1 || out[0].Node != "a" || !out[0].Reply.NeedsMark || out[0].Reply.Reason != node.ReasonNew {
			t.Errorf("after the release these are known to take no part: %v", out)
		}
	})
}

// TestServerThatCameBackIsNotQuarantinedAgain has a client ask that knows it as it was.
func TestServerThatCameBackIsNotQuarantinedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		idle, busy := s.near(), s.near()
		once(t, idle)
		s.quarantine()
		for _, server := range s.servers[1:] {
			server.restartEmpty()
			once(t, busy)
			s.quarantine()
		}
		once(t, idle)
		time.Sleep(time.Second)
		if m := s.servers[1].save().Marker; m.TrustedFrom.After(time.Now()) {
			t.Errorf("the server was marked again: %+v", m)
		}
	})
}
