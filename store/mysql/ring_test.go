//go:build unix

package mysql_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/mysql"
)

// TestReleaseWakesAWaiter has a release be heard by another node, also after the session
// that hears has ended, and where the release rings for one that has just left.
func TestReleaseWakesAWaiter(t *testing.T) {
	onBoth(t, func(t *testing.T, p product) {
		dsn := p.shared(t)
		first, second := openedOn(t, dsn, "ring"), openedOn(t, dsn, "ring")
		woken := make(chan node.Wake, 100)
		defer second.Listen(func(w node.Wake) { woken <- w })()
		leaver := openedOn(t, dsn, "ring")
		defer leaver.Listen(func(node.Wake) {})()
		wakes := func() error { return wakes(t.Context(), first, second, leaver, woken) }
		poll.Within(t, 2*poll.Patience, wakes)
		var sleeper string
		poll.Until(t, "a session sleeps", func() bool {
			return operator(t, dsn).QueryRow("SELECT id FROM information_schema.processlist WHERE info LIKE 'SELECT IF%'").Scan(&sleeper) == nil
		})
		exec(t, dsn, "KILL "+sleeper)
		poll.Within(t, 2*poll.Patience, wakes)
		missed := 0
		for range 20 {
			if err := wakes(); err != nil {
				t.Log(err)
				missed++
			}
		}
		if missed > 5 { // on a busy machine
			t.Errorf("%d of 20 waiters were not woken", missed)
		}
	})
}

// wakes returns nil if a release by one node wakes who waits at another one. A leaver is
// before that one, and leaves between the holder's look at the queue and its release.
func wakes(ctx context.Context, holder, waiter, leaver *mysql.Node, woken <-chan node.Wake) error {
	one, two, gone := acquire("one"+rand.Text()), acquire("two"+rand.Text()), acquire("gone"+rand.Text())
	if r, err := holder.Do(ctx, one); err != nil || r.Status != node.Granted {
		return fmt.Errorf("the holder: %v, %v", r.Status, err)
	}
	one.Op, two.Ticket, gone.Ticket = node.OpRelease, 2, 1
	defer holder.Do(ctx, one)
	waits := func(n *mysql.Node, req *node.Request) error {
		req.Token, req.Wait = one.Token+1, true
		for r := (node.Reply{}); !r.Wakes; time.Sleep(20 * time.Millisecond) {
			var err error
			if r, err = n.Do(ctx, *req); err != nil || r.Status != node.Held {
				return fmt.Errorf("a waiter: %v, %v", r.Status, err)
			}
		}
		return nil
	}
	if err := cmp.Or(waits(leaver, &gone), waits(waiter, &two)); err != nil {
		return err
	}
	gone.Op, holder = node.OpRelease, mysql.Between(holder, func() { leaver.Do(ctx, gone) })
	defer func() {
		two.Op = node.OpRelease
		waiter.Do(ctx, two)
	}()
	if r, err := holder.Do(ctx, one); err != nil || r.Status != node.Granted {
		return fmt.Errorf("the release: %v, %v", r.Status, err)
	}
	for end := time.After(time.Second); ; { // a nap takes longer
		select {
		case w := <-woken:
			if two.Token = w.Fence + 1; w.Kind == node.WakeTurn && w.Value == two.Value {
				if r, err := waiter.Do(ctx, two); err != nil || r.Status != node.Granted {
					return fmt.Errorf("who was woken: %v, %v", r.Status, err)
				}
				return nil
			}
		case <-end:
			return errors.New("the waiter was not woken")
		}
	}
}
