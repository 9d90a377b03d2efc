package redlatchgocron

import (
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
)

var noon = time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)

func TestLastTimeThatHasComeIsDue(t *testing.T) {
	after := func(s ...float64) (times []time.Time) {
		for _, s := range s {
			times = append(times, noon.Add(time.Duration(s*float64(time.Second))))
		}
		return times
	}
	for _, c := range []struct {
		why   string
		times []time.Time
		now   float64
		want  []time.Time
	}{
		{"in time", after(0, 60, 120), 0.003, after(0)},
		{"late", after(0, 60, 120), 40, after(0)},
		{"very late, with another run waiting", after(0, 60, 120), 61, after(60)},
		{"the clock was set back by a second", after(0, 60, 120), -1, after(0)},
		{"the clock was set back, and the scheduler still has the time before", after(0, 60, 120), 59.5, after(60)},
		{"a short period, late", after(0, 2, 4), 1.7, after(0)},
		{"by hand, the next run is in a minute", after(60, 120), 0, nil},
		{"by hand, a short period", after(1.5, 3.5), 0, nil},
		{"the only run of a job", after(0), 0.1, after(0)},
		{"the only run of a job, with the clock set back", after(0), -2, after(0)},
		{"not in order", after(60, 0), 0.1, after(0)},
		{"none", nil, 0, nil},
	} {
		want := time.Time{}
		if len(c.want) > 0 {
			want = c.want[0]
		}
		if got := lastDue(c.times, after(c.now)[0]); !got.Equal(want) {
			t.Errorf("%s: due at %v, want %v", c.why, got, want)
		}
	}
}

func TestOnlyJobsThatCountFromTheirStartAreRounded(t *testing.T) {
	due := noon.Add(7*time.Second + 123*time.Millisecond)
	for _, c := range []struct {
		schedule gocron.JobSchedule
		want     time.Time
	}{
		{gocron.DurationJobSchedule{Duration: 5 * time.Second}, noon.Add(5 * time.Second)},
		{gocron.DurationRandomJobSchedule{Min: 2 * time.Second, Max: time.Minute}, noon.Add(6 * time.Second)},
		{gocron.CronJobSchedule{Crontab: "* * * * *"}, due},
		{gocron.DailyJobSchedule{}, due},
	} {
		if got := round(due, c.schedule); !got.Equal(c.want) {
			t.Errorf("%T: %v, want %v", c.schedule, got, c.want)
		}
	}
	if got := round(time.Time{}, gocron.DurationJobSchedule{Duration: time.Hour}); !got.IsZero() {
		t.Errorf("no time is rounded to %v", got)
	}
}
