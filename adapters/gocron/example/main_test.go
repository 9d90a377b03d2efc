//go:build unix

package main

import (
	"syscall"
	"testing"

	"github.com/redlatch/redlatch/internal/test/processes"
)

func TestMain(m *testing.M) { processes.Main(m, main) }

func TestCopiesRunTheJobAndStop(t *testing.T) {
	_, env := processes.Quorum(t, 3)
	for mode, says := range map[string]string{"-lead=false": "the report is written, token", "-lead=true": "the leader writes the report"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			p := processes.Start(t, mode, env, mode, "-spec", "* * * * * *")
			p.Line(says)
			p.Signal(syscall.SIGTERM)
			if code := p.Wait(); code != 0 {
				t.Errorf("it exits with %d: %s", code, p.Said())
			}
		})
	}
}
