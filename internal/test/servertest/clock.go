//go:build unix

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
	dir, err := os.MkdirTemp("", "clock")
	check.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	library, err := clockshim.Build(dir)
	check.Must(t, err)
	clock, err := clockshim.New(filepath.Join(dir, "clock"))
	check.Must(t, err)
	t.Cleanup(func() { clock.Close() })
	clock.Set(off, 0)
	return Start(t, &redisproc.Server{Env: clock.Env(library)}), clock
}
