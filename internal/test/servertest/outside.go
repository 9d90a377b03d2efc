//go:build unix

package servertest

import (
	"fmt"
	"slices"
	"testing"
)

// Outside is as much of a testing.TB as starting servers takes, for an example
// or a program. Fatal and Fatalf panic; End cleans up. It is not for several
// goroutines at once.
type Outside struct {
	testing.TB // nil: what is not defined here must not be used

	cleanups []func()
}

// Helper does nothing.
func (o *Outside) Helper() {}

// Cleanup has f called by End, the last one first.
func (o *Outside) Cleanup(f func()) { o.cleanups = append(o.cleanups, f) }

// Fatal panics.
func (o *Outside) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// Fatalf panics.
func (o *Outside) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// End cleans up.
func (o *Outside) End() {
	for _, f := range slices.Backward(o.cleanups) {
		f()
	}
}

// Example starts three servers for an example, and returns their addresses and
// what stops them.
func Example() (a, b, c string, stop func()) {
	t := &Outside{}
	servers := Redis(t, 3)
	return servers[0].URL(), servers[1].URL(), servers[2].URL(), t.End
}
