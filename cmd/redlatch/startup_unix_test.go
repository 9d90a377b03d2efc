//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

// BenchmarkStartup measures how much later CMD begins under redlatch, on a free
// lock, than by itself. The variants alternate, so that other load of the
// machine affects all alike; the result is the difference of the medians. make
// startup runs it.
func BenchmarkStartup(b *testing.B) {
	path := buildCommand(b)
	server := servertest.Redis(b, 1)[0]
	// Its first output marks its first instruction.
	child := []string{"/bin/echo", "x"}
	env := append(os.Environ(), "REDLATCH_STATE_DIR="+b.TempDir())
	ways := []struct {
		name string
		args []string
	}{
		{"by itself", child},
		{"in a file", append([]string{path, "run", "job", "--"}, child...)},
		{"on a server", append([]string{path, "run", "--nodes", server.URL(), "job", "--"}, child...)},
	}
	took := make([][]time.Duration, len(ways))
	const times = 200
	for b.Loop() {
		for range times {
			for i, w := range ways {
				took[i] = append(took[i], firstOutput(b, env, w.args))
			}
		}
	}
	for _, t := range took {
		slices.Sort(t)
	}
	at := func(i, percent int) time.Duration { return took[i][len(took[i])*percent/100] }
	for i, w := range ways {
		more := ""
		if i > 0 {
			more = fmt.Sprintf("   %.1f ms more than by itself (budget 30)", ms1(at(i, 50)-at(0, 50)))
			b.ReportMetric(ms1(at(i, 50)-at(0, 50)), "ms-more-"+[]string{"", "file", "server"}[i])
		}
		fmt.Printf("  CMD %-12s begins after %5.1f ms (p90 %5.1f)%s\n", w.name, ms1(at(i, 50)), ms1(at(i, 90)), more)
	}
	b.ReportMetric(0, "ns/op") // writes nothing
}

func ms1(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// firstOutput returns how long it takes from the start of a command to its first
// output.
func firstOutput(b *testing.B, env, args []string) time.Duration {
	b.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Stderr = env, os.Stderr
	out, err := cmd.StdoutPipe()
	must(b, err)
	start := time.Now()
	must(b, cmd.Start())
	_, err = out.Read(make([]byte, 2))
	took := time.Since(start)
	if failed := cmd.Wait(); err != nil || failed != nil {
		b.Fatal(err, failed)
	}
	return took
}
