package fence_test

import (
	"errors"
	"strings"
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

func TestStaleErrorsNameWhatIsAtStake(t *testing.T) {
	err := &fence.StaleError{Resource: "orders/42", Token: 1763000000123456, Highest: 1763000000123457}
	for _, part := range []string{"redlatch: ", `"orders/42"`, "1763000000123456", "1763000000123457"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q lacks %s", err, part)
		}
	}
}
