// Package redsync has the interface of github.com/go-redsync/redsync/v4, over
// redlatch. A program that uses redsync changes one import and runs:
//
//	import (
//		"github.com/go-redsync/redsync/v4/redis/goredis/v9"
//		goredislib "github.com/redis/go-redis/v9"
//
//		"github.com/redlatch/redlatch/adapters/redsync" // was github.com/go-redsync/redsync/v4
//	)
//
//	client := goredislib.NewClient(&goredislib.Options{Addr: "localhost:6379"})
//	rs := redsync.New(goredis.NewPool(client))
//
//	mutex := rs.NewMutex("orders/42", redsync.WithExpiry(8*time.Second))
//	if err := mutex.Lock(); err != nil {
//		return err
//	}
//	defer mutex.Unlock()
//
// New takes redsync's own pools, of every client that redsync knows: redlatch
// sends its scripts through them. Programs with redsync and programs with this
// package exclude each other on the same servers, so copies of a program can be
// exchanged one by one.
//
// What a program gets without another change: waiters are served in the order
// in which they came, every lock has a fencing token ([Mutex.Lease]), an error
// says who holds the lock, and a failed attempt leaves no key behind.
//
// As with redsync, a lock ends at its expiry unless Extend is called: nothing
// is extended in the background.
//
// [Open] connects by addresses instead of pools. Only then a release notifies
// the next waiter, and only then servers that lost their data are quarantined.
// Over pools waiters poll, as with redsync, and the guard is off, because a pool
// does not disclose which server it leads to.
package redsync
