package redlatch_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
)

// TestGrantOfANodeThatWasFrozenForLongIsUndone has a node stand still for
// longer than a lock lives, with a request in its buffer that it carries out
// when it goes on. Meanwhile nothing new can be sent to it: a connection that
// is made is not greeted.
func TestGrantOfANodeThatWasFrozenForLongIsUndone(t *testing.T) {
	for _, n := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			const ttl = 3 * time.Second
			links, nodes := newLinks(t, n)
			c := newClient(t, nodes, redlatch.Options{})
			links[0].freeze()
			links[0].set(func(l *link) {
				l.hook = func(req redlatch.Request) {
					if req.Op == redlatch.OpRelease {
						l.set(func(l *link) { l.refusing = errors.New("i/o timeout") })
					}
				}
			})
			l, err := c.TryLock(t.Context(), "job", redlatch.LockOptions{TTL: ttl})
			if n == 1 {
				wantErr(t, err, redlatch.ErrNoQuorum)
			} else if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if l != nil {
				if err := l.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(3 * ttl) // within the token's window, or the node would refuse it
			links[0].thaw()
			synctest.Wait()
			if links[0].holder(t, "job") == "" {
				t.Fatal("the request was not carried out late: nothing is shown")
			}
			links[0].set(func(l *link) { l.refusing, l.hook = nil, nil })
			time.Sleep(ttl / 2)
			wantFree(t, links, "job")
		})
	}
}
