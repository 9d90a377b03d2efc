package casnode

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/node"
)

var must = check.Must

// TestDamagedRowIsHeldUntilItIsBroken damages the row of a lock that is held. The
// name is refused until it is broken, and then for a whole quarantine.
func TestDamagedRowIsHeldUntilItIsBroken(t *testing.T) {
	for _, state := range [][]byte{{99, 1, 2}, {}, {1, 2}} {
		synctest.Test(t, func(t *testing.T) {
			s := newTable(time.Now)
			c, a := openClient(t, s)
			lease, err := c.Lock(t.Context(), "job", &redlatch.LockOptions{NoKeepAlive: true})
			must(t, err)
			s.damage("job", state)
			refused := func() error {
				t.Helper()
				other, err := c.TryLock(t.Context(), "job", nil)
				if !errors.Is(err, redlatch.ErrHeld) {
					t.Errorf("state %v: another acquires: %v, %v", state, other, err)
				}
				return err
			}
			if err := refused(); err == nil || !strings.Contains(err.Error(), "damaged row") || !strings.Contains(err.Error(), "redlatch break --foreign") {
				t.Errorf("the error does not name the way back: %v", err)
			}
			if _, _, err := c.Completed(t.Context(), "job", "today"); err == nil || !strings.Contains(err.Error(), "redlatch break --foreign") {
				t.Errorf("the error of an occurrence does not name the way back: %v", err)
			}
			if all, err := a.List(t.Context()); err != nil || len(all.Locks) != 1 || all.Locks[0].Name != "job" {
				t.Errorf("the list has %+v, %v; want the damaged row", all, err)
			}
			if err := c.Do(t.Context(), "other", nil, nothing); err != nil {
				t.Errorf("another name: %v", err)
			}
			_, err = a.Break(t.Context(), "job", &admin.BreakOptions{Foreign: true})
			must(t, err)
			refused()
			begin := time.Now()
			next, err := c.Lock(t.Context(), "job", nil)
			must(t, err)
			if waited := time.Since(begin); waited < 30*time.Second || lease.Err() == nil || next.Token() <= lease.Token() {
				t.Errorf("granted after %v, while the former holder is %v; tokens %v and %v", waited, lease.Err(), lease.Token(), next.Token())
			}
		})
	}
}

// TestDamagedMarkerIsWrittenAnewByInit damages the marker while a lock is held.
// Locks are refused until init, which does not trust the node.
func TestDamagedMarkerIsWrittenAnewByInit(t *testing.T) {
	for _, fresh := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newTable(time.Now)
			c, a := openClient(t, s)
			lease, err := c.Lock(t.Context(), "job", &redlatch.LockOptions{NoKeepAlive: true})
			must(t, err)
			s.damage(MarkerName, []byte{99})
			_, err = c.TryLock(t.Context(), "other", nil)
			if err == nil || errors.Is(err, redlatch.ErrHeld) || !strings.Contains(err.Error(), "redlatch init") {
				t.Errorf("the error does not name the way back: %v", err)
			}
			if fresh {
				if r, err := New(s, nil).Mark(t.Context(), node.MarkRequest{Mark: node.MarkFresh, Guard: &node.Guard{Quarantine: time.Minute}}); err != nil || r.Status != node.Quarantined {
					t.Errorf("declared new: %v, %v; want quarantined", r.Status, err)
				}
				return
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Errorf("release: %v", err)
			}
			states, err := a.Init(t.Context(), nil)
			if err != nil || states[0].Trusted || states[0].Left < 30*time.Second {
				t.Fatalf("init: %+v, %v; want a quarantine", states, err)
			}
			time.Sleep(states[0].Left)
			if err := c.Do(t.Context(), "job", nil, nothing); err != nil {
				t.Errorf("after the quarantine: %v", err)
			}
		})
	}
}

// openClient returns a client of a table that is trusted.
func openClient(t *testing.T, s *table) (*redlatch.Client, *admin.Admin) {
	t.Helper()
	c, err := redlatch.New([]redlatch.Node{guarded{New(s, nil)}}, &redlatch.Options{AssumeFresh: true})
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c, admin.New(c)
}

// guarded is a node with the guard on, as those of databases are.
type guarded struct{ *Node }

func (guarded) GuardsAlone() bool { return true }

func nothing(context.Context, *redlatch.Lease) error { return nil }

// damage changes what is stored of a name.
func (s *table) damage(name string, state []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rows[name]
	r.State = state
	s.rows[name] = r
}
