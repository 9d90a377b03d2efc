package server

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/bench/clock"
)

// Load is what the servers have done since they started, all together.
type Load struct {
	Scripts float64 // how many scripts they ran
	Micros  float64 // how long that took, by their own statistics, in µs
	Reads   float64 // calls of read(2) on connections
	Memory  float64 // used now, in bytes
	CPU     time.Duration
}

// Sub returns what was done since an earlier moment.
func (l Load) Sub(earlier Load) Load {
	return Load{l.Scripts - earlier.Scripts, l.Micros - earlier.Micros, l.Reads - earlier.Reads, l.Memory - earlier.Memory, l.CPU - earlier.CPU}
}

// PerScript returns how long a script took, in µs.
func (l Load) PerScript() float64 {
	if l.Scripts == 0 {
		return 0
	}
	return l.Micros / l.Scripts
}

var (
	scriptStats = regexp.MustCompile(`cmdstat_evalsha:calls=(\d+),usec=(\d+)`)
	readStats   = regexp.MustCompile(`total_reads_processed:(\d+)`)
	memoryStats = regexp.MustCompile(`used_memory:(\d+)`)
)

// Load reads the statistics of all servers.
func (r *Redis) Load() (Load, error) {
	var l Load
	for _, s := range r.servers {
		info, err := s.Ask("INFO", "everything")
		if err != nil {
			return l, fmt.Errorf("statistics of %s: %w", s.Addr(), err)
		}
		number := func(e *regexp.Regexp, group int) float64 {
			if m := e.FindStringSubmatch(info); m != nil {
				n, _ := strconv.ParseFloat(m[group], 64) // digits alone
				return n
			}
			return 0
		}
		l.Scripts += number(scriptStats, 1)
		l.Micros += number(scriptStats, 2)
		l.Reads += number(readStats, 1)
		l.Memory += number(memoryStats, 1)
		l.CPU += clock.OfProcess(s.Pid())
	}
	return l, nil
}
