// Package check ends tests at errors.
package check

import (
	"fmt"
	"os"
)

// T is a *testing.T, or one of another package that is like it.
type T interface {
	Helper()
	Fatal(args ...any)
}

// Must ends the test if there is an error.
func Must(t T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Seeds returns the seeds of a run: those of REDLATCH_SEEDS, or else the ones given.
func Seeds(t T, from, count uint64) (first, seeds uint64) {
	t.Helper()
	s := os.Getenv("REDLATCH_SEEDS")
	if s == "" {
		return from, count
	}
	if n, err := fmt.Sscanf(s, "%d:%d", &from, &count); n != 2 || err != nil || count == 0 {
		t.Fatal(fmt.Sprintf("REDLATCH_SEEDS is %q: it must be FROM:COUNT, with a count above 0", s))
	}
	return from, count
}
