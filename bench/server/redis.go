package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/redlatch/redlatch/bench/clock"
	"github.com/redlatch/redlatch/internal/redisproc"
)

// Redis is a number of independent redis-server processes, which write nothing
// to disk.
type Redis struct {
	dir     string
	servers []*redisproc.Server
	frozen  *redisproc.Server // nil if none is
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
	return r, nil
}

// Addresses returns host:port of each server.
func (r *Redis) Addresses() []string {
	var list []string
	for _, s := range r.servers {
		list = append(list, s.Addr())
	}
	return list
}

// Freeze stops the last server where it is.
func (r *Redis) Freeze() error {
	r.frozen = r.servers[len(r.servers)-1]
	return r.frozen.Freeze()
}

// Sample reads the counters of all servers; of a frozen one the CPU time alone.
func (r *Redis) Sample() (Sample, error) {
	sample := Sample{Begun: clock.Now(), Commands: map[string]int64{}}
	for _, s := range r.servers {
		sample.CPU += clock.OfProcess(s.Pid())
		if s == r.frozen {
			continue
		}
		info, err := s.Ask("INFO", "commandstats")
		if err != nil {
			return sample, fmt.Errorf("statistics of %s: %w", s.Addr(), err)
		}
		// Lines are like cmdstat_client|setname:calls=3,usec=…
		for line := range strings.Lines(info) {
			name, rest, _ := strings.Cut(line, ":calls=")
			calls, _, _ := strings.Cut(rest, ",")
			if n, err := strconv.ParseInt(calls, 10, 64); err == nil {
				sample.Commands[strings.TrimPrefix(name, "cmdstat_")] += n
			}
		}
	}
	sample.At = clock.Now()
	return sample, nil
}

// Keys returns the keys on server i that match a pattern.
func (r *Redis) Keys(i int, pattern string) ([]string, error) {
	text, err := r.servers[i].Ask("KEYS", pattern)
	return strings.Split(text, "\n"), err
}

// Stop ends the servers and removes their folders.
func (r *Redis) Stop() {
	for _, s := range r.servers {
		s.Kill()
	}
	os.RemoveAll(r.dir)
}
