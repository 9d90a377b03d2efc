// Package stock shows how functions that lock call each other, although a lock
// is not re-entrant: the exported ones lock, and the others take the lease.
package stock

import (
	"context"
	"errors"
	"fmt"

	"github.com/redlatch/redlatch"
)

// Store counts what is on the shelves of a shop.
type Store struct {
	Locks *redlatch.Client
	Shop  string
	Count map[string]int // whatever holds the data; the lock protects it
}

// snippet: nested

// Take takes some of an article off the shelf.
func (s *Store) Take(ctx context.Context, article string, n int) error {
	return s.Locks.Do(ctx, s.Shop, nil, func(ctx context.Context, lease *redlatch.Lease) error {
		return s.take(ctx, lease, article, n)
	})
}

// TakeAll takes several articles, or none of them. It calls take, not Take: that
// would ask for the lock which this function holds.
func (s *Store) TakeAll(ctx context.Context, order map[string]int) error {
	return s.Locks.Do(ctx, s.Shop, nil, func(ctx context.Context, lease *redlatch.Lease) error {
		for article, n := range order {
			if s.Count[article] < n {
				return fmt.Errorf("%d of %s are left", s.Count[article], article)
			}
		}
		for article, n := range order {
			if err := s.take(ctx, lease, article, n); err != nil {
				return err
			}
		}
		return nil
	})
}

// take does the work. The lease is what shows that the caller holds the lock, and
// its token is for what is written.
func (s *Store) take(ctx context.Context, lease *redlatch.Lease, article string, n int) error {
	if lease.Name() != s.Shop {
		return fmt.Errorf("%s is locked, not %s", lease.Name(), s.Shop)
	}
	if err := lease.Err(); err != nil {
		return err
	}
	if s.Count[article] < n {
		return errors.New("not enough of " + article)
	}
	s.Count[article] -= n
	return nil
}

// end snippet
