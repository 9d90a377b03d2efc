//go:build linux

package redistest

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/clockshim"
)

// StartWithClock starts a server whose wall clock is off by the given time. It
// needs a C compiler.
func StartWithClock(t testing.TB, off time.Duration, settings ...string) *Server {
	t.Helper()
	dir := t.TempDir()
	library, err := clockshim.Build(dir)
	if err != nil {
		t.Fatal(err)
	}
	clock, err := clockshim.New(filepath.Join(dir, "clock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { clock.Close() })
	clock.Set(off, 0)
	s := &Server{t: t, dir: t.TempDir(), args: settings, env: clock.Env(library)}
	s.start()
	s.await()
	return s
}
