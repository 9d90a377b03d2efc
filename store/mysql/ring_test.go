//go:build unix

package mysql_test

import (
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
// that hears has ended.
func TestReleaseWakesAWaiter(t *testing.T) {
	onBoth(t, func(t *testing.T, p product) {
		dsn := p.shared(t)
		first, second := openedOn(t, dsn, "ring"), openedOn(t, dsn, "ring")
		woken := make(chan node.Wake, 100)
		defer second.Listen(func(w node.Wake) { woken <- w })()
		wakes := func() error { return wakes(t.Context(), first, second, woken) }
		poll.Within(t, 2*poll.Patience, wakes)
		exec(t, dsn, "KILL "+sleeper(t, dsn))
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

// sleeper returns the session that sleeps.
func sleeper(t *testing.T, dsn string) (id string) {
	poll.Until(t, "a session sleeps", func() bool {
		return operator(t, dsn).QueryRow("SELECT id FROM information_schema.processlist WHERE info LIKE 'SELECT IF%'").Scan(&id) == nil
	})
	return id
}

// wakes returns nil if a release by one node wakes who waits at another one.
func wakes(ctx context.Context, holder, waiter *mysql.Node, woken <-chan node.Wake) error {
	one, two := acquire("one"+rand.Text()), acquire("two"+rand.Text())
	two.Token, two.Wait = two.Token+1, true
	if r, err := holder.Do(ctx, one); err != nil || r.Status != node.Granted {
		return fmt.Errorf("the holder: %v, %v", r.Status, err)
	}
	one.Op, two.Ticket = node.OpRelease, int64(two.Token)
	defer holder.Do(ctx, one)
	for r := (node.Reply{}); !r.Wakes; time.Sleep(20 * time.Millisecond) {
		var err error
		if r, err = waiter.Do(ctx, two); err != nil || r.Status != node.Held {
			return fmt.Errorf("the waiter: %v, %v", r.Status, err)
		}
	}
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
			if w.Kind == node.WakeTurn && w.Value == two.Value {
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
