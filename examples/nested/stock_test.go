package stock

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/store/memory"
)

func newStore(t *testing.T) *Store {
	locks, err := redlatch.New(memory.Nodes(3), nil)
	check.Must(t, err)
	t.Cleanup(func() { locks.Close() })
	return &Store{Locks: locks, Shop: "shop/1", Count: map[string]int{"tea": 5, "milk": 1}}
}

func TestFunctionsThatLockShareTheirWork(t *testing.T) {
	s := newStore(t)
	if err := s.Take(t.Context(), "tea", 1); err != nil {
		t.Error(err)
	}
	if err := s.TakeAll(t.Context(), map[string]int{"tea": 2, "milk": 1}); err != nil {
		t.Error(err)
	}
	if err := s.TakeAll(t.Context(), map[string]int{"tea": 1, "milk": 1}); err == nil {
		t.Error("one milk was taken twice")
	}
	if want := map[string]int{"tea": 2, "milk": 0}; !maps.Equal(s.Count, want) {
		t.Errorf("left is %v, want %v", s.Count, want)
	}
}

// The mistake that the second function avoids is an error at once, and no wait
// without end.
func TestLockInsideItselfIsAnErrorAtOnce(t *testing.T) {
	s := newStore(t)
	err := s.Locks.Do(t.Context(), s.Shop, nil, func(ctx context.Context, _ *redlatch.Lease) error {
		return s.Take(ctx, "tea", 1)
	})
	if !errors.Is(err, redlatch.ErrDeadlock) || !strings.Contains(err.Error(), s.Shop) {
		t.Errorf("the error is %v, want ErrDeadlock with the name", err)
	}
	if s.Count["tea"] != 5 {
		t.Errorf("%d are left, want 5", s.Count["tea"])
	}
}
