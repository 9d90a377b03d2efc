// Package poll waits in tests for what no event announces.
package poll

import (
	"testing"
	"time"
)

// Patience is the limit for what must happen at some time: a busy machine needs
// it, a test that passes does not.
const Patience = 90 * time.Second

// The shortest and the longest pause between two checks.
const (
	shortest = 5 * time.Millisecond
	longest  = 25 * time.Millisecond
)

// Holds reports whether a condition holds before the limit. The longer it
// waits, the less often it checks: a check may cost the machine a connection or
// a process.
func Holds(limit time.Duration, is func() bool) bool {
	for start := time.Now(); ; {
		if is() {
			return true
		}
		waited := time.Since(start)
		if waited > limit {
			return false
		}
		time.Sleep(min(max(waited/10, shortest), longest))
	}
}

// Until waits until a condition holds.
func Until(t testing.TB, what string, is func() bool) {
	t.Helper()
	if !Holds(Patience, is) {
		t.Fatalf("not within %v: %s", Patience, what)
	}
}

// Within waits until check returns no error, and fails with its last one.
func Within(t testing.TB, limit time.Duration, check func() error) {
	t.Helper()
	var err error
	if !Holds(limit, func() bool { err = check(); return err == nil }) {
		t.Fatalf("after %v: %v", limit, err)
	}
}
