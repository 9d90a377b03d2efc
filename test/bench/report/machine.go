package report

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/test/bench/server"
	"github.com/redlatch/redlatch/test/bench/stats"
)

// Machine is what was measured on, and with: names and values.
type Machine [][2]string

// syncTime is how long the disk of the servers takes for a write that lasts; 0 if it
// cannot be measured.
func syncTime() time.Duration {
	f, err := os.CreateTemp("", "redlatch-bench-sync-")
	if err != nil {
		return 0
	}
	defer os.Remove(f.Name())
	defer f.Close()
	var times []time.Duration
	for range 51 {
		began := time.Now()
		_, _ = f.Write(make([]byte, 4096))
		_ = f.Sync()
		times = append(times, time.Since(began))
	}
	return stats.Summarize(times).Median
}

// ThisMachine describes this machine. Programs are servers, with what is to be
// known of their settings; modules are those whose versions matter.
func ThisMachine(programs [][2]string, modules []string) Machine {
	commit, _ := exec.Command("git", "describe", "--always", "--dirty").Output()
	cpu, _ := os.ReadFile("/proc/cpuinfo")
	_, model, _ := strings.Cut(string(cpu), "model name\t: ")
	model, _, _ = strings.Cut(model, "\n")
	load, _ := os.ReadFile("/proc/loadavg") // of others: it is not idle
	m := Machine{
		{"date", time.Now().UTC().Format("2006-01-02 15:04 MST")},
		{"commit", strings.TrimSpace(string(commit))},
		{"processor", fmt.Sprintf("%d × %s, load average %s", runtime.NumCPU(), model, load[:min(len(load), 4)])},
		{"Go", runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH},
		{"disk", "4 KiB are written and synced in " + Short(syncTime()) + ", the median"},
	}
	for _, p := range programs {
		m = append(m, [2]string{p[0], server.Version(p[0]) + p[1]})
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, path := range modules {
			if i := slices.IndexFunc(info.Deps, func(d *debug.Module) bool { return d.Path == path }); i >= 0 {
				m = append(m, [2]string{path, info.Deps[i].Version})
			}
		}
	}
	return m
}
