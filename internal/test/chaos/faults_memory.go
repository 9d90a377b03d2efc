//go:build unix

package chaos

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// memoryFaults are the faults of servers whose memory is full.
func memoryFaults() []Family {
	return []Family{
		{Name: "full", About: "fill a server's memory, so that it refuses to write", kinds: redisAlone, node: full},
		{Name: "evict", About: "fill a server's memory, so that it drops locks and fences to make room", Beyond: true, kinds: redisAlone, node: evict},
	}
}

// ballast begins the names of the keys that fill a memory.
const ballast = "torture-ballast:"

// fill writes a lot of data, and then sets a memory limit that is too small by
// short bytes, with a policy for what to do about it.
func fill(s redisServer, policy string, short int64) error {
	junk := strings.Repeat("x", 32<<10)
	for i := range 8 {
		if _, err := s.Ask("SET", ballast+strconv.Itoa(i), junk); err != nil {
			return err
		}
	}
	used, err := infoNumber(s, "memory", "used_memory")
	if err != nil {
		return err
	}
	return limit(s, policy, used-short)
}

// limit sets the memory limit, in bytes, and what is evicted then.
func limit(s redisServer, policy string, bytes int64) error {
	if _, err := s.Ask("CONFIG", "SET", "maxmemory-policy", policy); err != nil {
		return err
	}
	_, err := s.Ask("CONFIG", "SET", "maxmemory", strconv.FormatInt(bytes, 10))
	return err
}

// makeRoom makes room again, and stops eviction.
func makeRoom(s redisServer) error {
	if err := limit(s, "noeviction", 0); err != nil {
		return err
	}
	keys, err := s.Ask("KEYS", ballast+"*")
	if err != nil || keys == "" {
		return err
	}
	_, err = s.Ask(append([]string{"DEL"}, strings.Split(keys, "\n")...)...)
	return err
}

func infoNumber(s redisServer, section, field string) (int64, error) {
	text, err := s.Ask("INFO", section)
	if err != nil {
		return 0, err
	}
	_, rest, ok := strings.Cut(text, "\n"+field+":")
	if !ok {
		return 0, fmt.Errorf("INFO %s has no %s", section, field)
	}
	number, _, _ := strings.Cut(rest, "\r")
	return strconv.ParseInt(number, 10, 64)
}

func full(w *world, n *node, rng *rand.Rand) strike {
	return strike{detail: "has no memory left, and refuses", lasts: between(rng, 300*time.Millisecond, 2*time.Second),
		apply: func(*Fault) error { return fill(n.at(), "noeviction", 64<<10) },
		heal:  func(*Fault) error { return makeRoom(n.at()) }}
}

func evict(w *world, n *node, rng *rand.Rand) strike {
	policy := []string{"volatile-lru", "volatile-ttl", "allkeys-random"}[rng.IntN(3)]
	return strike{detail: "has no memory left, and evicts (" + policy + ")", lasts: between(rng, 300*time.Millisecond, 2*time.Second),
		apply: func(*Fault) error {
			// By little, so that it continues to grant locks that it will soon
			// evict.
			return fill(n.at(), policy, 2<<10)
		},
		heal: func(f *Fault) error {
			evicted, err := infoNumber(n.at(), "stats", "evicted_keys")
			if err == nil {
				f.Detail += fmt.Sprintf("; %d keys since it started", evicted)
			}
			err = makeRoom(n.at())
			f.Breaks = append(f.Breaks, Span{f.From, now()})
			return err
		}}
}
