// Package ground lets a program use what was made for tests: it is as much of
// a testing.TB as starting servers takes.
package ground

import (
	"fmt"
	"os"
	"sync"
	"testing"
)

// Ground is a testing.TB outside of a test. Fatal panics; End cleans up.
type Ground struct {
	testing.TB // nil: what is not here is not to be used

	mu       sync.Mutex
	cleanups []func()
}

// Helper does nothing.
func (g *Ground) Helper() {}

// Cleanup has f called by End, the last one first.
func (g *Ground) Cleanup(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cleanups = append(g.cleanups, f)
}

// TempDir returns a new folder, which End removes.
func (g *Ground) TempDir() string {
	dir, err := os.MkdirTemp("", "redlatch-interop")
	if err != nil {
		g.Fatal(err)
	}
	g.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// Fatal panics.
func (g *Ground) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// Fatalf panics.
func (g *Ground) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// End cleans up.
func (g *Ground) End() {
	for {
		g.mu.Lock()
		n := len(g.cleanups)
		if n == 0 {
			g.mu.Unlock()
			return
		}
		f := g.cleanups[n-1]
		g.cleanups = g.cleanups[:n-1]
		g.mu.Unlock()
		f()
	}
}
