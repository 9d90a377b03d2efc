//go:build linux

package clockshim_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/redisproc"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/clockshim"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// start starts a server with a clock of its own.
func start(t *testing.T) (*redisproc.Server, *clockshim.Clock) {
	t.Helper()
	program := servertest.Need(t)
	dir := t.TempDir()
	library, err := clockshim.Build(dir)
	check.Must(t, err)
	clock, err := clockshim.New(filepath.Join(dir, "clock"))
	check.Must(t, err)
	t.Cleanup(func() { clock.Close() })
	s := &redisproc.Server{Program: program, Dir: filepath.Join(dir, "s"), Env: clock.Env(library)}
	check.Must(t, s.Start())
	t.Cleanup(s.Kill)
	return s, clock
}

// off returns by how much the server's clock is ahead of ours.
func off(t *testing.T, s *redisproc.Server) time.Duration {
	t.Helper()
	before := time.Now()
	text, err := s.Ask("TIME")
	check.Must(t, err)
	var seconds, micros int64
	_, err = fmt.Sscan(strings.ReplaceAll(text, "\n", " "), &seconds, &micros)
	check.Must(t, err)
	return time.Unix(seconds, micros*1000).Sub(before)
}

// near allows for the time that asking takes on a busy machine.
func near(got, want time.Duration) bool { return got > want-time.Second && got < want+10*time.Second }

func TestServerGoesByTheClockThatIsSet(t *testing.T) {
	s, clock := start(t)
	_, err := s.Ask("SET", "k", "v", "PX", "1800000")
	check.Must(t, err)
	for _, want := range []time.Duration{0, -time.Hour, time.Hour, 0} {
		clock.Set(want, 0)
		if got := off(t, s); !near(got, want) {
			t.Errorf("the server's clock is off by %v, not %v", got, want)
		}
		if got, err := s.Ask("GET", "k"); (got == "") != (want > 0) && want != 0 || err != nil {
			t.Errorf("the key that expires in half an hour is %q, %v, and the clock off by %v", got, err, want)
		}
	}
	clock.Set(0, time.Hour) // in every second
	for first := off(t, s); off(t, s)-first <= time.Hour; {
		time.Sleep(time.Millisecond)
	}
	clock.Slew(0)
	stands := clock.Off()
	if got := off(t, s); stands < time.Hour || !near(got, stands) {
		t.Errorf("the server's clock is off by %v, not %v", got, stands)
	}
}
