//go:build unix

package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/processes"
)

func TestMain(m *testing.M) { processes.Main(m, main) }

func TestCopiesRunTheJobAndStop(t *testing.T) {
	_, env := processes.Quorum(t, 3)
	copies := []*processes.Process{
		processes.Start(t, "A", env, "-spec", "* * * * * *"),
		processes.Start(t, "B", env, "-spec", "* * * * * *"),
	}
	for _, p := range copies {
		p.Line("started")
	}
	for late := time.Now().Add(time.Minute); !strings.Contains(copies[0].Said()+copies[1].Said(), "is written"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatal("no report within a minute")
		}
	}
	said := map[string]int{}
	for _, p := range copies {
		p.Signal(syscall.SIGTERM)
		if code := p.Wait(); code != 0 {
			t.Errorf("it exits with %d: %s", code, p.Said())
		}
		for line := range strings.Lines(p.Said()) {
			if text, _, ok := strings.Cut(line, " is written"); ok {
				said[text]++
			}
		}
	}
	for report, times := range said {
		if times > 1 {
			t.Errorf("%s was written %d times", report, times)
		}
	}
}
