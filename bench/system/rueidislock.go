package system

import (
	"context"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

type rueidislockLocker struct{ locks rueidislock.Locker }

func openRueidislock(_ context.Context, addresses []string) (Locker, error) {
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: addresses, ForceSingleClient: true},
		KeyValidity:    TTL,
		KeyMajority:    1,
		NoLoopTracking: true,
		// Its default of 20 ms is too short for a crowded machine: a try that
		// takes longer is given up, and then waits for a notification, which
		// does not come if no other client has the lock.
		TryNextAfter: 250 * time.Millisecond,
	})
	if err != nil {
		return nil, err
	}
	return rueidislockLocker{l}, nil
}

// Lock's lock ends with ctx, unlike that of all other clients. The bench ends
// its contexts only when a measurement is over.
func (l rueidislockLocker) Lock(ctx context.Context, name string) (Held, error) {
	_, release, err := l.locks.WithContext(ctx, name)
	if err != nil {
		return nil, err
	}
	return heldFunc(func(context.Context) error {
		release() // returns when the key is gone
		return nil
	}), nil
}

func (l rueidislockLocker) Close() { l.locks.Close() }
