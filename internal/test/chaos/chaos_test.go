//go:build unix

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/chaos"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// config is a short run.
func config(t *testing.T, faults string) chaos.Config {
	t.Helper()
	program := servertest.Need(t)
	families, err := chaos.Choose(faults)
	check.Must(t, err)
	return chaos.Config{
		Program: program, Path: os.Args[0], Args: []string{os.Args[0], chaos.ClientVerb}, Nodes: servers(5), Clients: 6, Names: 2,
		For: 12 * time.Second, Seed: 1, Faults: families, Least: 200 * time.Millisecond, Most: time.Second, Fenced: true,
		Notice: func(text string) { t.Log(text) },
	}
}

// servers are n nodes on Redis.
func servers(n int) []chaos.ServerKind { return slices.Repeat([]chaos.ServerKind{chaos.Redis}, n) }

// running limits how many runs there are at once: each is a dozen processes,
// and on a machine that is too busy for them no run makes progress.
var running = make(chan struct{}, min(3, runtime.NumCPU()))

// run executes a run, and logs its result.
func run(t *testing.T, c chaos.Config) *chaos.Result {
	t.Helper()
	running <- struct{}{}
	defer func() { <-running }()
	r, err := chaos.Run(context.Background(), c)
	check.Must(t, err)
	t.Logf("%v: %v", c.For, r)
	if dir := os.Getenv("REDLATCH_TORTURE_KEEP"); dir != "" {
		keep, err := os.Create(filepath.Join(dir, strings.ReplaceAll(t.Name(), "/", "-")+".jsonl"))
		check.Must(t, err)
		if err := errors.Join(r.Save(keep), keep.Close()); err != nil {
			t.Error(err)
		}
	}
	return r
}

// holds executes a run in which every promise must hold.
func holds(t *testing.T, c chaos.Config) *chaos.Result {
	t.Helper()
	r := run(t, c)
	if !r.Verdict.Held() {
		t.Error("a promise was broken")
	}
	if err := r.Enough(); err != nil {
		t.Error(err)
	}
	return r
}

// found runs until a run shows something, but no longer than for ten runs and
// 2,000 acquisitions. On a busy machine a run has forty.
func found(t *testing.T, c chaos.Config, shows func(r *chaos.Result) bool) bool {
	t.Helper()
	locks := 0
	for n := 0; n < 10 || locks < 2000; n++ {
		r := run(t, c)
		if shows(r) {
			return true
		}
		locks += r.Verdict.Counts.Acquisitions()
		c.Seed++
	}
	return false
}

// long returns how long each seed is to run, and which seeds; a short time
// unless make torture asks for more.
func long(t *testing.T, short time.Duration) (length time.Duration, seeds []uint64) {
	t.Helper()
	text := os.Getenv("REDLATCH_TORTURE") // "5x120s": so many seeds for so long; "7:5x120s": from seed 7 on
	if text == "" {
		return short, []uint64{1}
	}
	seed, each := uint64(1), ""
	if !strings.Contains(text, ":") {
		text = "1:" + text
	}
	count := 0
	_, err := fmt.Sscanf(strings.Replace(text, "x", " x ", 1), "%d:%d x %s", &seed, &count, &each)
	if err == nil {
		length, err = time.ParseDuration(each)
	}
	if err != nil || count < 1 || length <= 0 {
		t.Fatalf("REDLATCH_TORTURE is %q: it must be a number of seeds and a time, as 5x120s, or as 7:5x120s from seed 7 on", text)
	}
	for n := range uint64(count) {
		seeds = append(seeds, seed+n)
	}
	return length, seeds
}

func TestEveryPromiseHoldsUnderEveryFault(t *testing.T) {
	length, seeds := long(t, 7*time.Second)
	if len(seeds) == 1 {
		t.Parallel()
	}
	acquisitions := 0
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			c := config(t, "all")
			c.Seed, c.For, c.Clients, c.Names = seed, length, 8, 4
			r := holds(t, c)
			acquisitions += r.Verdict.Counts.Acquisitions()
			if struck := r.Struck(); length >= time.Minute && len(struck) < len(r.Ran) {
				t.Errorf("not every fault struck, only %q", struck)
			}
			if os.Geteuid() == 0 && slices.ContainsFunc(r.LeftOut, func(left string) bool { return strings.Contains(left, "install") }) {
				t.Errorf("not every fault was on: %v", r.LeftOut)
			}
		})
	}
	t.Logf("%d acquisitions in all", acquisitions)
	if len(seeds) >= 5 && length >= 120*time.Second && acquisitions < 10_000 {
		t.Error("that is too few to say much: at least 10000 are wanted")
	}
}

// TestEveryPromiseHoldsOnAMixedQuorum has one node of each of four kinds, and the faults
// that databases can have too. All are within the assumptions: nothing is excused.
func TestEveryPromiseHoldsOnAMixedQuorum(t *testing.T) {
	t.Parallel()
	c := config(t, "kill,freeze,failover,partition,swallow,delay,reset,pause,client-kill")
	c.For, c.Names = 6*time.Second, 4
	// The other kinds are for a program that has their stores: see cmd/redlatch-torture.
	c.Nodes = []chaos.ServerKind{chaos.Redis, chaos.Postgres, chaos.MariaDB, chaos.Sentinel}
	r := holds(t, c)
	if !slices.ContainsFunc(r.History.Faults, func(f chaos.Fault) bool { return f.Node > 0 && c.Nodes[f.Node-1] != chaos.Redis }) {
		t.Error("nothing happened to a database")
	}
	if len(r.Verdict.Excused) > 0 {
		t.Error("a broken promise is excused where nothing excuses it")
	}
}

// TestFaultsBeyondTheAssumptionsAreWhatTwoHoldersTake has any number of servers
// evict at once: there are two holders, the report says why, and the data is
// not corrupted.
func TestFaultsBeyondTheAssumptionsAreWhatTwoHoldersTake(t *testing.T) {
	t.Parallel()
	c := config(t, "evict")
	// Of three servers, two must have dropped a lock.
	c.Nodes, c.For, c.Allowed, c.Least, c.Most = servers(3), 2*time.Second, 100, 10*time.Millisecond, 100*time.Millisecond
	if !found(t, c, func(r *chaos.Result) bool {
		if !r.Verdict.Held() {
			t.Error("a promise was broken that no fault excuses")
		}
		return slices.Contains(rules(r.Verdict.Excused), chaos.Overlap)
	}) {
		t.Error("there were never two holders: the fault does nothing")
	}
}

// TestWithoutFencingTheSameRunCorruptsTheResource pauses clients past the end
// of their leases; they write when they continue.
func TestWithoutFencingTheSameRunCorruptsTheResource(t *testing.T) {
	c := config(t, "all")
	c.Clients, c.Fenced, c.For = 8, false, 120*time.Second
	tries := 1
	if os.Getenv("REDLATCH_TORTURE") == "" {
		// Pauses alone, and another run if no pause came between reading and
		// writing.
		t.Parallel()
		c.Faults, _ = chaos.Choose("pause")
		c.For, c.Least, c.Most, tries = 2*time.Second, 10*time.Millisecond, 100*time.Millisecond, 20
	}
	for ; tries > 0; tries-- {
		r := run(t, c)
		if !r.Verdict.Held() {
			t.Error("a promise was broken")
		}
		if len(r.Verdict.Corruption) > 0 {
			return
		}
		c.Seed++
	}
	t.Error("there is no corruption: the resource does not show what fencing is for")
}

// TestFailoversMakeTwoHoldersOnlyWithoutTheGuard fails over one Redis server, and
// a master behind a sentinel.
func TestFailoversMakeTwoHoldersOnlyWithoutTheGuard(t *testing.T) {
	t.Run("without", func(t *testing.T) {
		t.Parallel()
		c := config(t, "failover")
		c.Nodes, c.NoGuard, c.For, c.Names = servers(1), true, 12*time.Second, 1
		c.Allowed, c.Least, c.Most = 100, 5*time.Millisecond, 40*time.Millisecond
		if !found(t, c, func(r *chaos.Result) bool { return slices.Contains(rules(r.Verdict.Violations), chaos.Overlap) }) {
			t.Error("there were never two holders: the fault does nothing")
		}
	})
	for _, kind := range []chaos.ServerKind{chaos.Redis, chaos.Sentinel} {
		t.Run("with, "+string(kind), func(t *testing.T) {
			t.Parallel()
			c := config(t, "failover")
			c.Nodes, c.For, c.Names = []chaos.ServerKind{kind}, 8*time.Second, 2
			holds(t, c)
		})
	}
}
