package fresh

import (
	"context"
	"errors"
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
	})
}

func TestServersThatWereMarkedInPartAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if last, calls, err := try(errSlow, admin.ErrNotFresh, errSlow); err != nil || calls != 4 || last.AssumeFresh || !last.Wait {
			t.Errorf("%v after %d calls, the last with %+v", err, calls, last)
		}
	})
}

func TestRefusalIsReturnedAtOnce(t *testing.T) {
	for _, refusal := range []error{admin.ErrNotFresh, redlatch.ErrConfig} {
		if _, calls, err := try(refusal); !errors.Is(err, refusal) || calls != 1 {
			t.Errorf("%v after %d calls, want %v at once", err, calls, refusal)
		}
	}
}

func TestServersThatNeverAnswerAreGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := Try(context.Background(), func(context.Context, admin.InitOptions) error { return errSlow })
		if !errors.Is(err, errSlow) {
			t.Errorf("it returns %v, want the last error", err)
		}
	})
}
