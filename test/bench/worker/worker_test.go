package worker

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/test/bench/clock"
	"github.com/redlatch/redlatch/test/bench/contender"
	"github.com/redlatch/redlatch/test/bench/server"
	"github.com/redlatch/redlatch/test/bench/stats"
)

func TestContendersOfACrowdAreApart(t *testing.T) {
	r, err := server.StartRedis(t.Context(), 1)
	check.Must(t, err)
	defer r.Stop()
	w, err := ready(Config{Contender: "redlatch", Addresses: r.Addresses, Contenders: 3, Apart: true})
	check.Must(t, err)
	if l := w.lockers; l[0] == l[1] || l[1] == l[2] || l[0] == l[2] {
		t.Error("two contenders share their connections")
	}
}

// TestFailuresAreCountedByTheirKind has a contender whose calls fail in turn.
func TestFailuresAreCountedByTheirKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		release := func(err error) contender.Release { return func(context.Context) error { return err } }
		l := &contender.Locker{Lock: func(ctx context.Context, _ string) (contender.Release, error) {
			time.Sleep(time.Millisecond)
			switch calls++; calls {
			case 1:
				return nil, errors.New("refused")
			case 2:
				return release(errors.New("not released")), nil
			case 3:
				return release(fmt.Errorf("late: %w", redlatch.ErrLost)), nil
			case 4:
				<-ctx.Done() // its deadline
				return nil, errors.New("frozen")
			case 5:
				return release(nil), nil
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		w := &crew{Config: Config{Contenders: 1, Deadline: 50 * time.Millisecond}, lockers: []*contender.Locker{l}, histories: make([][]stats.Request, 1)}
		did := w.follow(Order{Start: clock.Now(), End: clock.Now() + int64(80*time.Millisecond)})
		if did.Errors != 3 || did.Unreleased != 1 || did.Lost != 1 || did.Error != "lock: refused" {
			t.Errorf("%d errors, %d not released, %d lost, first %s; want 3, 1, 1, refused", did.Errors, did.Unreleased, did.Lost, did.Error)
		}
		if list := did.Requests; len(list) != 6 || !list[4].Got || list[3].Acquired-list[3].Called != int64(w.Deadline) {
			t.Errorf("%+v; want each try, and that the fourth took its 50 ms", list)
		}
	})
}
