package redlatchcron

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/redlatch/redlatch/internal/test/check"
)

// seconds parses a spec with a field for seconds.
func seconds(t *testing.T, spec string) cron.Schedule {
	t.Helper()
	s, err := cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor).Parse(spec)
	check.Must(t, err)
	return s
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	check.Must(t, err)
	return at
}

func TestJobRunsForTheLastTimeItWasDue(t *testing.T) {
	for _, c := range []struct{ spec, now, want string }{
		{"0 3 * * *", "2026-11-16T03:00:00.004Z", "2026-11-16T03:00:00Z"},
		{"0 3 * * *", "2026-11-16T03:00:00Z", "2026-11-16T03:00:00Z"},
		{"0 3 * * *", "2026-11-16T02:59:59.999Z", "2026-11-15T03:00:00Z"},
		{"0 3 * * *", "2026-11-17T02:00:00Z", "2026-11-16T03:00:00Z"}, // very late
		{"* * * * *", "2026-11-16T03:07:59.999Z", "2026-11-16T03:07:00Z"},
		{"*/5 * * * * *", "2026-11-16T03:07:04.9Z", "2026-11-16T03:07:00Z"},
		{"* * * * * *", "2026-11-16T03:07:04.9Z", "2026-11-16T03:07:04Z"},
		{"* * 9-17 * * 1", "2026-11-20T12:00:00Z", "2026-11-16T17:59:59Z"}, // a crowd, four days ago
		{"0 0 29 2 *", "2027-03-01T00:00:00Z", "2024-02-29T00:00:00Z"},
		{"CRON_TZ=Europe/Berlin 30 2 * * *", "2026-10-25T00:30:00.1Z", "2026-10-25T00:30:00Z"}, // summer time ends
		{"0 0 30 2 *", "2026-11-16T03:07:04.9Z", "2026-11-16T03:07:04Z"},                       // never due
		{"@every 10s", "2026-11-16T03:07:04.9Z", "2026-11-16T03:07:00Z"},
		{"@every 10s", "2026-11-16T03:07:09.9Z", "2026-11-16T03:07:00Z"},
		{"@every 1h30m", "2026-11-16T04:29:00Z", "2026-11-16T03:00:00Z"},
	} {
		if got := dueAt(seconds(t, c.spec), at(t, c.now)); !got.Equal(at(t, c.want)) {
			t.Errorf("%s at %s: due at %v, want %s", c.spec, c.now, got, c.want)
		}
	}
}

func TestPeriodsOfLessThanASecondAreKnown(t *testing.T) {
	s := cron.ConstantDelaySchedule{Delay: 100 * time.Millisecond}
	if got, want := dueAt(s, at(t, "2026-11-16T03:07:04.987Z")), at(t, "2026-11-16T03:07:04.9Z"); !got.Equal(want) {
		t.Errorf("due at %v, want %v", got, want)
	}
}

// TestDueIsTheLastOfAllTimes compares with a search from the beginning.
func TestDueIsTheLastOfAllTimes(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	check.Must(t, err)
	const week = 7 * 24 * time.Hour
	for _, spec := range []string{"*/7 * * * *", "3,4,59 */2 * * *", "0 1-5 * * 1,3", "30 2 * * *", "15 15 3 * * 0"} {
		s, begin := seconds(t, spec), at(t, "2026-10-11T00:00:00Z").In(berlin)
		var all []time.Time
		for next := s.Next(begin); next.Before(begin.Add(3 * week)); next = s.Next(next) {
			all = append(all, next)
		}
		for range 50 {
			now := begin.Add(week + time.Duration(rand.Int64N(int64(2*week))))
			var want time.Time
			for _, due := range all {
				if !due.After(now) {
					want = due
				}
			}
			if got := dueAt(s, now); !got.Equal(want) {
				t.Errorf("%s at %v: due at %v, want %v", spec, now, got, want)
			}
		}
	}
}
