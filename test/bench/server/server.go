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
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/test/bench/clock"
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

// Backend is the servers that a contender keeps its locks on.
type Backend struct {
	// Addresses are host:port of each server, or of the link to it.
	Addresses []string
	// Stop ends the servers and removes their folders.
	Stop func()

	pids  func() ([]int, error) // of the servers' processes
	count func(*Sample) error   // adds what the servers have counted
}

// Start starts n servers of a kind, behind a network if it has links.
func Start(ctx context.Context, k Kind, n int, network Network) (*Backend, error) {
	switch k {
	case EtcdKind, ZooKeeper:
		return startCluster(k, n)
	case Postgres, MariaDB:
		return startDatabase(k)
	}
	b, err := StartRedis(ctx, n)
	if err == nil && network.Delay > 0 {
		if err = b.link(network); err != nil {
			b.Stop()
		}
	}
	return b, err
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

// Sample reads the counters of all servers, and the CPU time of their processes before
// and after that.
func (b *Backend) Sample() (Sample, error) {
	pids, err := b.pids()
	if err != nil {
		return Sample{}, err
	}
	cpu := func() (sum time.Duration) {
		for _, pid := range pids {
			sum += clock.OfProcess(pid)
		}
		return sum
	}
	s := Sample{Begun: clock.Now(), CPU: cpu(), Commands: map[string]int64{}, Micros: map[string]int64{}}
	if err = b.count(&s); err != nil {
		err = fmt.Errorf("statistics of %v: %w", b.Addresses, err)
	}
	s.atEnd, s.At = cpu(), clock.Now()
	return s, err
}

// StartRedis starts n independent redis-server processes, which write nothing to disk,
// and waits until each answers.
func StartRedis(ctx context.Context, n int) (*Backend, error) {
	dir, err := os.MkdirTemp("", "redlatch-bench-redis-")
	if err != nil {
		return nil, err
	}
	servers := make([]*redisproc.Server, n)
	for i := range servers {
		servers[i] = &redisproc.Server{Dir: filepath.Join(dir, strconv.Itoa(i))}
	}
	b := &Backend{Stop: func() {
		for _, s := range servers {
			s.Kill()
		}
		os.RemoveAll(dir)
	}}
	if err := redisproc.StartAll(ctx, servers...); err != nil {
		b.Stop()
		return nil, fmt.Errorf("%w (make deps installs redis-server)", err)
	}
	b.Addresses = servertest.Hosts(servers)
	b.pids = func() (all []int, _ error) {
		for _, s := range servers {
			all = append(all, s.Pid())
		}
		return all, nil
	}
	b.count = func(sum *Sample) error {
		for _, s := range servers {
			info, err := s.Ask("INFO", "all")
			if err != nil {
				return err
			}
			for line := range strings.Lines(info) {
				name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
				sum.add(name, value)
			}
		}
		return nil
	}
	return b, nil
}

// add adds a line of a Redis server's statistics.
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
