//go:build linux

package servertest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/redisproc"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/clockshim"
)

// StartWithClock starts a server whose wall clock is off by the given time. It
// needs a C compiler.
func StartWithClock(t testing.TB, off time.Duration) *Server {
	t.Helper()
	s, _ := StartWithSettableClock(t, off)
	return s
}

// StartWithSettableClock is like StartWithClock, and also returns the clock.
func StartWithSettableClock(t testing.TB, off time.Duration) (*Server, *clockshim.Clock) {
	t.Helper()
	clock, env := newClock(t)
	clock.Set(off, 0)
	return Start(t, &redisproc.Server{Env: env}), clock
}

// newClock returns a clock, and the environment of servers that go by it.
func newClock(t testing.TB) (*clockshim.Clock, []string) {
	t.Helper()
	// A server may run as another user.
	dir, err := os.MkdirTemp("", "clock")
	if err == nil {
		t.Cleanup(func() { os.RemoveAll(dir) })
		err = os.Chmod(dir, 0o755)
	}
	check.Must(t, err)
	library, err := clockshim.Build(dir)
	check.Must(t, err)
	path := filepath.Join(dir, "clock")
	clock, err := clockshim.New(path)
	check.Must(t, err)
	t.Cleanup(func() { clock.Close() })
	check.Must(t, os.Chmod(path, 0o644))
	return clock, clock.Env(library)
}
