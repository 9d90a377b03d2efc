// Package poll waits in tests for what no event announces.
package poll

import (
	"testing"
	"time"
)

// Patience is the limit for what must happen at some time: a busy machine needs
// it, a test that passes does not.
const Patience = 90 * time.Second

// Holds reports whether a condition holds before the limit.
func Holds(limit time.Duration, is func() bool) bool {
	for end := time.Now().Add(limit); ; time.Sleep(5 * time.Millisecond) {
		if is() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
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
