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
)

// Machine is what was measured on, and with: names and values.
type Machine [][2]string

// ThisMachine describes the machine as it is now: call it before the run, so
// that the load is not the run's own. Programs are servers, with what is to be
// known of their settings; modules are those whose versions matter.
func ThisMachine(programs [][2]string, modules []string) Machine {
	load, _ := os.ReadFile("/proc/loadavg")
	averages := strings.Fields(string(load))
	kernel, _ := exec.Command("uname", "-srm").Output()
	commit, _ := exec.Command("git", "describe", "--always", "--dirty").Output()
	m := Machine{
		{"date", time.Now().UTC().Format("2006-01-02 15:04 MST")},
		{"commit", strings.TrimSpace(string(commit))},
		{"processor", fmt.Sprintf("%d × %s", runtime.NumCPU(), field("/proc/cpuinfo", "model name"))},
		{"memory", field("/proc/meminfo", "MemTotal")},
		{"kernel", strings.TrimSpace(string(kernel))},
		{"load before", strings.Join(averages[:min(3, len(averages))], " ")},
		{"Go", runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH},
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

// field returns the first value of a name in a file of lines like "name: value".
func field(file, name string) string {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return "unknown"
}
