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

	"github.com/redlatch/redlatch/bench/server"
)

// Machine is what the numbers were measured on, and with: names and values.
type Machine [][2]string

// compared are the modules whose versions matter.
var compared = []string{
	"github.com/redis/rueidis", "github.com/redis/go-redis/v9", "github.com/go-redsync/redsync/v4",
	"github.com/bsm/redislock", "go.etcd.io/etcd/client/v3",
}

// comparedDatabases are those of the run on databases.
var comparedDatabases = []string{"github.com/jackc/pgx/v5", "github.com/go-sql-driver/mysql", "cirello.io/pglock"}

// ThisMachine describes the machine as it is now: call it before the run, so
// that the load is not the run's own.
func ThisMachine() Machine {
	return thisMachine(compared, [2]string{"Redis", server.Version("redis-server") + ", `--save '' --appendonly no`"},
		[2]string{"etcd", server.Version("etcd") + ", three members"})
}

// ThisMachineForDatabases is ThisMachine for the run on databases.
func ThisMachineForDatabases() Machine {
	return thisMachine(comparedDatabases, [2]string{"PostgreSQL", server.Version("psql") + ", without fsync"},
		[2]string{"MariaDB", server.Version("mariadbd") + ", `innodb_flush_log_at_trx_commit=2`"})
}

func thisMachine(modules []string, servers ...[2]string) Machine {
	load, _ := os.ReadFile("/proc/loadavg")
	averages := strings.Fields(string(load))
	kernel, _ := exec.Command("uname", "-srm").Output()
	m := append(Machine{
		{"date", time.Now().UTC().Format("2006-01-02 15:04 MST")},
		{"processor", fmt.Sprintf("%d × %s", runtime.NumCPU(), field("/proc/cpuinfo", "model name"))},
		{"memory", field("/proc/meminfo", "MemTotal")},
		{"kernel", strings.TrimSpace(string(kernel))},
		{"load before", strings.Join(averages[:min(3, len(averages))], " ")},
		{"Go", runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH},
	}, servers...)
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
