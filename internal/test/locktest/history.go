package locktest

import (
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/node"
)

// History is the leases of one name, for the judge.
type History struct {
	mu     sync.Mutex
	leases []*exclusion.Lease
}

// Hold acquires the lock, holds it for d, and releases it.
func (h *History) Hold(t testing.TB, c *redlatch.Client, name string, opts redlatch.LockOptions, d time.Duration) {
	t.Helper()
	asked := time.Now().UnixNano()
	l := MustLock(t, c, name, opts)
	held := &exclusion.Lease{Who: l.Owner(), Token: uint64(l.Token()), Asked: asked, Got: time.Now().UnixNano()}
	switch {
	case opts.Shared:
		held.Mode = node.Shared
	case opts.Slots > 0:
		held.Share = node.Share{Mode: node.Slotted, Slots: uint8(opts.Slots), Slot: uint8(l.Slot())}
	}
	time.Sleep(d)
	held.Until = time.Now().UnixNano()
	h.mu.Lock()
	h.leases = append(h.leases, held)
	h.mu.Unlock()
	check.Must(t, l.Release(t.Context()))
}

// Judge fails if leases broke a promise. It returns how many there were, and how many
// at once.
func (h *History) Judge(t testing.TB) (leases, most int) {
	t.Helper()
	for _, f := range exclusion.Judge(h.leases) {
		exclusion.Never(t, "%s: %s", f.Rule, f.Text)
	}
	for _, l := range h.leases {
		most = max(most, 1+len(l.Beside))
	}
	return len(h.leases), most
}
