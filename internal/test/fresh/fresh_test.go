package fresh

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
)

var errSlow = errors.New("i/o timeout")

// try calls Try with a mark that fails with each of errs and then succeeds. It
// returns the options of the last call, the number of calls, and the result.
func try(errs ...error) (last admin.InitOptions, calls int, err error) {
	err = Try(context.Background(), func(_ context.Context, opts admin.InitOptions) error {
		last = opts
		calls++
		if calls <= len(errs) {
			return errs[calls-1]
		}
		return nil
	})
	return last, calls, err
}

func TestServersAreAskedAgainUntilTheyAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if last, calls, err := try(errSlow, errSlow); err != nil || calls != 3 || !last.AssumeFresh {
			t.Errorf("%v after %d calls, the last with %+v", err, calls, last)
		}
		// Some were marked, and are waited for.
		if last, calls, err := try(errSlow, admin.ErrNotFresh, errSlow); err != nil || calls != 4 || last.AssumeFresh || !last.Wait {
			t.Errorf("%v after %d calls, the last with %+v", err, calls, last)
		}
		if _, calls, err := try(slices.Repeat([]error{errSlow}, 10_000)...); !errors.Is(err, errSlow) {
			t.Errorf("servers that never answer: %v after %d calls", err, calls)
		}
		for _, refusal := range []error{admin.ErrNotFresh, redlatch.ErrConfig} {
			if _, calls, err := try(refusal); !errors.Is(err, refusal) || calls != 1 {
				t.Errorf("%v after %d calls, want %v at once", err, calls, refusal)
			}
		}
	})
}
