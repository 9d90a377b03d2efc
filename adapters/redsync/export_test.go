package redsync

import (
	pools "github.com/go-redsync/redsync/v4/redis"

	"github.com/redlatch/redlatch"
)

// PoolNodes is poolNodes for tests.
func PoolNodes(list []pools.Pool) ([]redlatch.Node, error) { return poolNodes(list, new(arrivals)) }

// IsClosed returns a function that reports whether the clients are closed. It
// does not keep the Redsync in use.
func IsClosed(r *Redsync) func() bool {
	s := r.sessions
	return func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.closed
	}
}
