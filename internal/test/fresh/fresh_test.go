package fresh

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
)

// TestServersAreAskedAgainUntilTheyAnswer has marking fail with each of some errors,
// and then succeed.
func TestServersAreAskedAgainUntilTheyAnswer(t *testing.T) {
	slow, taken := errors.New("i/o timeout"), admin.ErrNotFresh
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			fails []error
			last  admin.InitOptions
			want  error
		}{
			{[]error{slow, slow}, admin.InitOptions{AssumeFresh: true}, nil},
			{[]error{slow, taken, slow}, admin.InitOptions{Wait: true}, nil}, // some were marked, and are waited for
			{slices.Repeat([]error{slow}, 10_000), admin.InitOptions{AssumeFresh: true}, slow},
			{[]error{taken}, admin.InitOptions{AssumeFresh: true}, taken},
			{[]error{redlatch.ErrConfig}, admin.InitOptions{AssumeFresh: true}, redlatch.ErrConfig},
		} {
			calls, last := 0, admin.InitOptions{}
			err := Try(context.Background(), func(_ context.Context, opts admin.InitOptions) (err error) {
				if last = opts; calls < len(c.fails) {
					err = c.fails[calls]
				}
				calls++
				return err
			})
			if !errors.Is(err, c.want) || !reflect.DeepEqual(last, c.last) || err == nil && calls != len(c.fails)+1 {
				t.Errorf("%v after %d calls, the last with %+v", err, calls, last)
			}
		}
	})
}
