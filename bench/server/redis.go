package server

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch/bench/clock"
	"github.com/redlatch/redlatch/bench/resp"
)

// Redis is a number of independent redis-server processes.
type Redis struct {
	dir     string
	servers []*redisServer
}

type redisServer struct {
	*process
	addr  string
	stats *resp.Conn
	last  map[string]int64
}

// StartRedis starts n servers that write nothing to disk, and waits until each
// answers.
func StartRedis(n int) (*Redis, error) {
	dir, err := os.MkdirTemp("", "redlatch-bench-redis-")
	if err != nil {
		return nil, err
	}
	r := &Redis{dir: dir}
	for i := range n {
		s, err := startRedis(filepath.Join(dir, strconv.Itoa(i)))
		if err != nil {
			r.Stop()
			return nil, err
		}
		r.servers = append(r.servers, s)
	}
	return r, nil
}

func startRedis(dir string) (*redisServer, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	// Another process may be faster in taking the port; then the next is tried.
	var failure error
	for range 5 {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		s := &redisServer{addr: "127.0.0.1:" + port}
		s.process, err = start(dir, "redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", dir,
			"--save", "", "--appendonly", "no", "--daemonize", "no")
		if err != nil {
			return nil, err
		}
		if failure = s.await(s.greet); failure == nil {
			return s, nil
		}
		s.stop()
	}
	return nil, failure
}

// greet makes the connection for statistics, to the process that we started
// and to no other.
func (s *redisServer) greet() error {
	c, err := resp.Dial(s.addr)
	if err != nil {
		return err
	}
	c.SetDeadline(time.Now().Add(2 * time.Second))
	info, err := c.Do("INFO", "server")
	if err == nil && !strings.Contains(info.Text, fmt.Sprintf("process_id:%d\r\n", s.cmd.Process.Pid)) {
		err = fmt.Errorf("another process has the port of %s", s.addr)
	}
	if err != nil {
		c.Close()
		return err
	}
	c.SetDeadline(time.Time{})
	s.stats = c
	return nil
}

// Addresses returns host:port of each server.
func (r *Redis) Addresses() []string {
	var list []string
	for _, s := range r.servers {
		list = append(list, s.addr)
	}
	return list
}

// Freeze stops the last server where it is.
func (r *Redis) Freeze() error { return r.servers[len(r.servers)-1].freeze() }

// Thaw lets it go on.
func (r *Redis) Thaw() error { return r.servers[len(r.servers)-1].thaw() }

// Sample reads the counters of all servers that are not frozen.
func (r *Redis) Sample() (Sample, error) {
	sample := Sample{Begun: clock.Now(), Commands: map[string]int64{}}
	for _, s := range r.servers {
		if !s.isFrozen() {
			s.stats.SetDeadline(time.Now().Add(10 * time.Second))
			info, err := s.stats.Do("INFO", "commandstats")
			if err != nil {
				return sample, fmt.Errorf("statistics of %s: %w", s.addr, err)
			}
			s.last = parseCommandStats(info.Text)
		}
		for name, n := range s.last {
			sample.Commands[name] += n
		}
		sample.CPU += s.cpu()
	}
	sample.At = clock.Now()
	return sample, nil
}

// parseCommandStats reads lines like "cmdstat_client|setname:calls=3,usec=…".
func parseCommandStats(info string) map[string]int64 {
	stats := map[string]int64{}
	for line := range strings.Lines(info) {
		name, rest, ok := strings.Cut(line, ":calls=")
		if !ok {
			continue
		}
		calls, _, _ := strings.Cut(rest, ",")
		n, err := strconv.ParseInt(calls, 10, 64)
		if err == nil {
			stats[strings.TrimPrefix(name, "cmdstat_")] = n
		}
	}
	return stats
}

// Stop ends the servers and removes their folders.
func (r *Redis) Stop() {
	for _, s := range r.servers {
		s.stop()
		s.stats.Close()
	}
	os.RemoveAll(r.dir)
}

// RedisVersion returns the version of the redis-server that is installed.
func RedisVersion() string {
	out, err := exec.Command("redis-server", "--version").Output()
	if err != nil {
		return "not installed"
	}
	for field := range strings.FieldsSeq(string(out)) {
		if v, ok := strings.CutPrefix(field, "v="); ok {
			return v
		}
	}
	return strings.TrimSpace(string(out))
}
