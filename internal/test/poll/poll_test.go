package poll_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch/internal/test/poll"
)

// recorder is a TB that records how a test failed.
type recorder struct {
	testing.TB
	text string
}

func (r *recorder) Helper()                           {}
func (r *recorder) Fatalf(format string, args ...any) { r.text += fmt.Sprintf(format+"; ", args...) }

func TestPollEndsWhenItHoldsOrAtItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		after := func(d time.Duration) func() bool { return func() bool { return time.Since(begin) >= d } }
		r := &recorder{TB: t}
		poll.Until(r, "a second is over", after(time.Second))
		if took := time.Since(begin); r.text != "" || took < time.Second || took > 2*time.Second {
			t.Errorf("after %v: %q", took, r.text)
		}
		poll.Until(r, "a day is over", after(24*time.Hour))
		poll.Within(r, time.Minute, func() error { return errors.New("no") })
		poll.Within(r, 0, func() error { return nil })
		if want := "not within 1m30s: a day is over; after 1m0s: no; "; r.text != want {
			t.Errorf("%q, not %q", r.text, want)
		}
	})
}
