//go:build unix

package redistest

import (
	"fmt"
	"os"
	"testing"
)

// Example starts three servers for an example, which has no testing.TB, and
// returns their addresses and what stops them.
func Example() (a, b, c string, stop func()) {
	t := &exampleTB{}
	servers := Start(t, 3)
	return servers[0].URL(), servers[1].URL(), servers[2].URL(), t.end
}

// exampleTB is as much of a testing.TB as starting servers takes.
type exampleTB struct {
	testing.TB
	cleanups []func()
	dirs     []string
}

func (t *exampleTB) Helper() {}

func (t *exampleTB) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }

func (t *exampleTB) TempDir() string {
	dir, err := os.MkdirTemp("", "redlatch")
	if err != nil {
		t.Fatal(err)
	}
	t.dirs = append(t.dirs, dir)
	return dir
}

func (t *exampleTB) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

func (t *exampleTB) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (t *exampleTB) end() {
	for i := len(t.cleanups) - 1; i >= 0; i-- {
		t.cleanups[i]()
	}
	for _, dir := range t.dirs {
		os.RemoveAll(dir)
	}
}
