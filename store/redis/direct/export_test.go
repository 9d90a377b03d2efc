package direct

import (
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/lend"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/redis"
)

// Watched is a driver that notes which replies callers have read.
type Watched struct {
	*driver
	read atomic.Bool
}

// Watch opens a node.
func Watch(address string) (node.Node, *Watched, error) {
	w := &Watched{}
	n, err := redis.Open(address, nil, func(a *redis.Address) (redis.Driver, error) {
		w.driver = &driver{address: a}
		return w, nil
	})
	return n, w, err
}

// CallerRead reports whether a caller has read its reply since this was last called.
func (w *Watched) CallerRead() bool { return w.read.Swap(false) }

// Lend is that of the driver.
func (w *Watched) Lend() lend.Loan {
	if loan := w.driver.Lend(); loan != nil {
		return watchedLoan{loan, w}
	}
	return nil
}

type watchedLoan struct {
	lend.Loan
	w *Watched
}

func (l watchedLoan) Read(done <-chan struct{}, limit time.Duration) {
	before := len(done)
	l.Loan.Read(done, limit)
	if before == 0 && len(done) > 0 {
		l.w.read.Store(true)
	}
}
