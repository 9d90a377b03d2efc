//go:build unix

package redis_test

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

// queueOf returns the key of the node queue of a name without braces.
func queueOf(name string) string { return "redlatch:1:queue:{" + name + "}" }

// inLine complains unless so many wait for the name on each server.
func inLine(servers []*servertest.Server, name string, want int) func() error {
	return func() error {
		for i, s := range servers {
			if n := s.Do("ZCARD", queueOf(name)); n != strconv.Itoa(want) {
				return fmt.Errorf("%s wait on server %d, want %d; the servers have %s", n, i, want, queues(servers, name))
			}
		}
		return nil
	}
}

// queues describes who has a name on each server, and who waits for it.
func queues(servers []*servertest.Server, name string) string {
	var all []string
	for _, s := range servers {
		holder := s.Do("TYPE", name) // of a foreign client
		if holder == "string" {
			holder = s.Do("GET", name)
		}
		all = append(all, fmt.Sprintf("%q before %q", holder, s.Do("ZRANGE", queueOf(name), "0", "-1")))
	}
	return strings.Join(all, ", ")
}

// nothingLeft complains if a lock, a queue or a notification is left on any
// server.
func nothingLeft(servers []*servertest.Server, name string) func() error {
	return func() error {
		for i, s := range servers {
			for key := range strings.SplitSeq(s.Do("KEYS", "*"), "\n") {
				if key == name || strings.HasPrefix(key, "redlatch:1:queue:") || strings.HasPrefix(key, "redlatch:1:turn:") {
					return fmt.Errorf("server %d has %q", i, key)
				}
			}
		}
		return nil
	}
}
