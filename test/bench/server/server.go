// Package server runs the servers that locks are measured on: real processes
// on free loopback ports, each in a folder of its own, and the links to them.
package server

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/redisproc"
	"github.com/redlatch/redlatch/test/bench/clock"
	"github.com/redlatch/redlatch/test/bench/process"
)

// Kind is what contenders keep their locks in.
type Kind string

// The kinds of servers.
const (
	RedisKind Kind = "redis"
	EtcdKind  Kind = "etcd"
	Postgres  Kind = "postgres"
	MariaDB   Kind = "mariadb"
	ZooKeeper Kind = "zookeeper"
)

// A Backend is the servers that a contender keeps its locks on.
type Backend interface {
	// Addresses returns host:port of each server.
	Addresses() []string
	// Sample reads the counters of all servers.
	Sample() (Sample, error)
	// Stop ends the servers and removes their folders.
	Stop()
}

// Start starts n servers of a kind, behind a network if it has links.
func Start(ctx context.Context, k Kind, n int, network Network) (Backend, error) {
	switch k {
	case EtcdKind, ZooKeeper:
		return startCluster(k, n)
	case Postgres:
		return startPostgres()
	case MariaDB:
		return startMariaDB()
	}
	r, err := StartRedis(ctx, n)
	if err == nil && network.Delay > 0 {
		if err = r.link(network); err != nil {
			r.Stop()
		}
	}
	return r, err
}

// Sample is what the servers counted since they started, all together.
type Sample struct {
	// Begun and At are the moments between which it was read, on the shared
	// clock.
	Begun, At int64
	// Commands are the calls by name of the command.
	Commands map[string]int64
	// CPU is what the servers used: at Begun and, with the reading, at At.
	CPU, atEnd time.Duration
	// Of Redis alone: how long commands took by the servers' own clocks, in µs,
	// and the memory that is in use, in bytes.
	Micros map[string]int64
	Memory float64
	// Writes is what a cluster has agreed on, each with its disks: requests that
	// write, refused ones included.
	Writes int64
}

// Sub returns what was counted between an earlier sample and this one, without
// the reading of either.
func (s Sample) Sub(earlier Sample) Sample {
	return Sample{
		Begun: earlier.At, At: s.Begun, CPU: s.CPU - earlier.atEnd,
		Commands: less(s.Commands, earlier.Commands), Micros: less(s.Micros, earlier.Micros),
		Memory: s.Memory - earlier.Memory, Writes: s.Writes - earlier.Writes,
	}
}

func less(now, earlier map[string]int64) map[string]int64 {
	d := map[string]int64{}
	for name, n := range now {
		if n -= earlier[name]; n != 0 {
			d[name] = n
		}
	}
	return d
}

// PerScript returns how long a script took.
func (s Sample) PerScript() time.Duration {
	return time.Duration(s.Micros["evalsha"]) * time.Microsecond / time.Duration(max(s.Commands["evalsha"], 1))
}

// Version returns the version of an installed server; "" if there is none.
func Version(program string) string {
	out, err := exec.Command(program, "--version").Output()
	if program == string(ZooKeeper) { // a file of Debian's has it in its name
		var names []string
		names, err = filepath.Glob("/usr/share/java/zookeeper-[0-9]*.jar")
		out = []byte(strings.Join(names, " "))
	}
	if err != nil {
		return ""
	}
	return string(regexp.MustCompile(`\d+(\.\d+)+`).Find(out))
}

// Redis is a number of independent redis-server processes, which write nothing
// to disk.
type Redis struct {
	dir       string
	servers   []*redisproc.Server
	links     *process.Process // nil for none
	addresses []string
}

// StartRedis starts n servers and waits until each answers.
func StartRedis(ctx context.Context, n int) (*Redis, error) {
	dir, err := os.MkdirTemp("", "redlatch-bench-redis-")
	if err != nil {
		return nil, err
	}
	r := &Redis{dir: dir}
	for i := range n {
		r.servers = append(r.servers, &redisproc.Server{Dir: filepath.Join(dir, strconv.Itoa(i))})
	}
	if err := redisproc.StartAll(ctx, r.servers...); err != nil {
		r.Stop()
		return nil, fmt.Errorf("%w (make deps installs redis-server)", err)
	}
	for _, s := range r.servers {
		r.addresses = append(r.addresses, s.Addr())
	}
	return r, nil
}

// Addresses returns host:port of each server, or of the link to it.
func (r *Redis) Addresses() []string { return r.addresses }

// sample reads the CPU time of processes, and the counters in between.
func sample(pids []int, read func(*Sample) error) (Sample, error) {
	cpu := func() (sum time.Duration) {
		for _, pid := range pids {
			sum += clock.OfProcess(pid)
		}
		return sum
	}
	s := Sample{Begun: clock.Now(), CPU: cpu(), Commands: map[string]int64{}, Micros: map[string]int64{}}
	err := read(&s)
	s.atEnd, s.At = cpu(), clock.Now()
	return s, err
}

// Sample reads the counters of all servers.
func (r *Redis) Sample() (Sample, error) {
	var pids []int
	for _, s := range r.servers {
		pids = append(pids, s.Pid())
	}
	return sample(pids, func(sum *Sample) error {
		for _, s := range r.servers {
			info, err := s.Ask("INFO", "all")
			if err != nil {
				return fmt.Errorf("statistics of %s: %w", s.Addr(), err)
			}
			for line := range strings.Lines(info) {
				name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
				sum.add(name, value)
			}
		}
		return nil
	})
}

// add adds a line of a server's statistics.
func (s *Sample) add(name, value string) {
	number, _ := strconv.ParseFloat(value, 64) // of most lines it is none
	if name == "used_memory" {
		s.Memory += number
	}
	// Those of commands are like cmdstat_client|setname:calls=3,usec=12,…
	if command, ok := strings.CutPrefix(name, "cmdstat_"); ok {
		var calls, micros int64
		fmt.Sscanf(value, "calls=%d,usec=%d", &calls, &micros)
		s.Commands[command] += calls
		s.Micros[command] += micros
	}
}

// Stop ends the servers and removes their folders.
func (r *Redis) Stop() {
	if r.links != nil {
		r.links.Stop()
	}
	for _, s := range r.servers {
		s.Kill()
	}
	os.RemoveAll(r.dir)
}
