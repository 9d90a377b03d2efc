//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/stall"
	"github.com/redlatch/redlatch/node"
)

// crowdSize is how many runs contend for one name.
const crowdSize = 40

// crowdStall is how late a timer may be before the order of a crowd shows nothing:
// a good part of the time in which a waiter must answer.
const crowdStall = node.TurnLease / 5

// buildCommand builds the command as users have it. With the race detector it
// takes the processor four times as long: many at once would test the
// machine instead. So commands that run by themselves are this one, and those
// that run in the background of a test have the race detector.
func buildCommand(t testing.TB) string {
	t.Helper()
	path, err := built()
	must(t, err)
	return path
}

// built builds it once, in the folder that apart removes.
var built = sync.OnceValues(func() (string, error) {
	path := filepath.Join(os.Getenv("REDLATCH_STATE_DIR"), "without-race", "redlatch")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %v\n%s", err, out)
	}
	return path, nil
})

// crowd is many runs of one name.
type crowd struct {
	t     testing.TB
	path  string
	nodes []string // flags
	dir   string
	began time.Time
	done  sync.WaitGroup

	mu     sync.Mutex
	failed []string
}

// start starts run i, whose CMD notes when it begins and when it ends.
func (c *crowd) start(i int) {
	c.t.Helper()
	args := append([]string{"run", "-q"}, c.nodes...)
	args = append(args, "job", "--", "sh", "-c", `echo "begin $0" >>log; echo "end $0" >>log`, fmt.Sprint(i))
	cmd := exec.Command(c.path, args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "REDLATCH_STATE_DIR="+c.dir, "REDLATCH_NODES=local")
	stderr := new(bytes.Buffer)
	cmd.Stderr = stderr
	must(c.t, cmd.Start())
	c.t.Cleanup(func() { cmd.Process.Kill() })
	c.done.Go(func() {
		if err := cmd.Wait(); err != nil || stderr.Len() > 0 {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.failed = append(c.failed, fmt.Sprintf("run %d: %v, %s", i, err, stderr))
		}
	})
}

// finish waits for all, checks that each of n ran once and never two at a time,
// and returns their order.
func (c *crowd) finish(n int) (order []int) {
	c.t.Helper()
	c.done.Wait()
	log, err := os.ReadFile(filepath.Join(c.dir, "log"))
	must(c.t, err)
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	times := map[string]int{}
	for i, line := range lines {
		who, begins := strings.CutPrefix(line, "begin ")
		if !begins {
			continue
		}
		if end := slices.Index(lines, "end "+who); end > i+1 { // a run that failed may have none
			exclusion.Never(c.t, "two at a time: %q is followed by %q", line, lines[i+1])
		}
		if times[who]++; times[who] > 1 {
			exclusion.Never(c.t, "run %s ran %d times", who, times[who])
		}
		number, _ := strconv.Atoi(who)
		order = append(order, number)
	}
	for _, f := range c.failed {
		stall.Busy(c.t, crowdStall, c.began) // a node has a second to answer
		c.t.Error(f)
	}
	if len(lines) != 2*n {
		c.t.Errorf("%d lines in the log, want two for each of %d runs", len(lines), n)
	}
	return order
}

// hold holds the lock until the returned function is called.
func (c *crowd) hold() (release func()) {
	c.t.Helper()
	return hold(c.t, c.dir, append([]string{c.path, "run", "-q"}, c.nodes...)...)
}

func TestCrowdThroughFiveServersRunsOneAtATime(t *testing.T) {
	servertest.Need(t)
	// A waiter that does not answer its notification within 300 ms is skipped.
	stall.Retry(t, func(t testing.TB) {
		servers := newQuorum(t, 5)
		c := &crowd{t: t, path: buildCommand(t), dir: t.TempDir(), began: time.Now(), nodes: []string{"--nodes", strings.Join(servertest.Addresses(servers), ",")}}
		release := c.hold()
		for i := range crowdSize {
			c.start(i)
			// The next one is started when this one is in the queue of every
			// node.
			for _, s := range servers {
				if !poll.Holds(poll.Patience, func() bool { return s.Do("ZCARD", "redlatch:1:queue:{job}") == fmt.Sprint(i+1) }) {
					t.Fatalf("run %d does not stand in line", i)
				}
			}
		}
		release()
		if order := c.finish(crowdSize); !slices.IsSorted(order) {
			stall.Busy(t, crowdStall, c.began)
			t.Errorf("the order was %v", order)
		}
		for _, s := range servers {
			if keys := s.Keys(); len(keys) > 0 {
				t.Errorf("%s still has %q", s.Addr(), keys)
			}
		}
	})
}
