package report

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/redlatch/redlatch/bench/server"
)

// Machine is what the numbers were measured on, and with.
type Machine struct {
	Date     string            `json:"date"`
	Cores    int               `json:"cores"`
	CPU      string            `json:"cpu"`
	Memory   string            `json:"memory"`
	Kernel   string            `json:"kernel"`
	Load     string            `json:"load_before"`
	Go       string            `json:"go"`
	Redis    string            `json:"redis"`
	Etcd     string            `json:"etcd"`
	Versions map[string]string `json:"modules"`
}

// compared are the modules whose versions matter.
var compared = []string{
	"github.com/redis/rueidis", "github.com/redis/go-redis/v9", "github.com/go-redsync/redsync/v4",
	"github.com/bsm/redislock", "go.etcd.io/etcd/client/v3",
}

// ThisMachine describes the machine as it is now: call it before the run, so
// that the load is not the run's own.
func ThisMachine() Machine {
	now := time.Now()
	m := Machine{
		Date:     now.UTC().Format("2006-01-02 15:04 MST"),
		Cores:    runtime.NumCPU(),
		CPU:      field("/proc/cpuinfo", "model name"),
		Memory:   field("/proc/meminfo", "MemTotal"),
		Kernel:   kernel(),
		Load:     load(),
		Go:       runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH,
		Redis:    server.RedisVersion(),
		Etcd:     server.EtcdVersion(),
		Versions: map[string]string{},
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			for _, c := range compared {
				if dep.Path == c {
					m.Versions[c] = dep.Version
				}
			}
		}
	}
	return m
}

// load returns the load averages of the last 1, 5 and 15 minutes.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	f := strings.Fields(string(b))
	return strings.Join(f[:min(3, len(f))], " ")
}

// field returns the first value of a name in a file of lines like "name: value".
func field(file, name string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return "unknown"
}

func kernel() string {
	out, err := exec.Command("uname", "-srm").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
