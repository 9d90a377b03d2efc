package redis_test

import (
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// TestUncheckedDELByAForeignClientIsFoundAtTheNextExtension has a foreign
// client release late, by a bare DEL, when redlatch holds the lock. The next
// one to ask is granted the lock too, until the extension of the first one
// finds out. A resource that has seen the higher token refuses the first.
func TestUncheckedDELByAForeignClientIsFoundAtTheNextExtension(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3} {
		servers := servertest.Redis(t, n)
		addresses := servertest.Addresses(servers)
		first, second := newClient(t, open(t, addresses...), redlatch.Options{}), newClient(t, open(t, addresses...), redlatch.Options{})
		for _, s := range servers {
			s.Do("SET", "job", "a foreign client's", "NX", "PX", "50") // it is paused for longer than that
		}
		eventually(t, patience, noKeys(servers)) // by expiry
		l := hold(t, first, servers...)
		for _, s := range servers {
			s.Do("DEL", "job")
		}
		next, err := second.TryLock(t.Context(), "job", nil)
		if err != nil || l.Err() != nil {
			t.Fatalf("on %d: there should be two holders: %v, and the first is %v", n, err, l.Err())
		}
		wantErr(t, l.Extend(t.Context()), redlatch.ErrLost)
		wantErr(t, l.Err(), redlatch.ErrLost)
		if err := next.Err(); err != nil {
			t.Errorf("on %d: the second is %v", n, err)
		}
		staleIsRefused(t, servers[0], l, next)
	}
}
