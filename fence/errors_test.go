package fence_test

import (
	"errors"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/fence"
)

func wantStale(t testing.TB, err error, token, highest redlatch.Token) {
	t.Helper()
	var stale *fence.StaleError
	if !errors.As(err, &stale) || !errors.Is(err, fence.ErrStale) {
		t.Fatalf("got %v, want ErrStale", err)
	}
	if stale.Token != token || stale.Highest != highest {
		t.Fatalf("got %v, want token %d and highest %d", err, uint64(token), uint64(highest))
	}
}
