//go:build unix

// Soak has processes take turns with one lock on real servers, with default
// options, for as long as it is asked to, and counts what went wrong:
//
//	go run ./internal/soak -for 5m -processes 8 -nodes 5 -hold 20ms
//
// It exits with 1 if a lock could not be had, was lost, could not be released,
// or was held by two at once. A failure in which the machine stood still for
// longer than the TTL is counted apart: no lease outlives that. Run it beside
// busy loops with make busy.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/fresh"
	"github.com/redlatch/redlatch/internal/owned"
	"github.com/redlatch/redlatch/internal/redisproc"
	"github.com/redlatch/redlatch/redis/direct"
)

// plan is what to do.
type plan struct {
	For         time.Duration
	Processes   int
	Nodes       int
	Hold        time.Duration
	NodeTimeout time.Duration // 0 for the default
	Addresses   []string      // of the servers, for a process
	File        string        // locked by whoever holds the lock
}

const planVariable = "SOAK_PLAN"

func main() {
	if text := os.Getenv(planVariable); text != "" {
		if err := take(text); err != nil {
			fmt.Fprintln(os.Stderr, "soak:", err)
			os.Exit(2)
		}
		return
	}
	var p plan
	flag.DurationVar(&p.For, "for", time.Minute, "how long, from 1s to 24h")
	flag.IntVar(&p.Processes, "processes", 8, "how many processes want the lock, from 1 to 100")
	flag.IntVar(&p.Nodes, "nodes", 5, "how many servers, from 1 to 15")
	flag.DurationVar(&p.Hold, "hold", 20*time.Millisecond, "how long each holds it, from 0 to 1m")
	flag.DurationVar(&p.NodeTimeout, "node-timeout", 0, "another node time limit than the default, to see this fail")
	flag.Parse()
	if err := p.check(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(64)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	sum, err := soak(ctx, p)
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(2)
	}
	fmt.Print(sum)
	if !sum.well() {
		os.Exit(1)
	}
}

// check refuses what is out of bounds.
func (p *plan) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("%q is no flag of this command", rest[0])
	case p.For < time.Second || p.For > 24*time.Hour:
		return fmt.Errorf("-for is %v: it must be from 1s to 24h", p.For)
	case p.Processes < 1 || p.Processes > 100:
		return fmt.Errorf("-processes is %d: it must be from 1 to 100", p.Processes)
	case p.Nodes < 1 || p.Nodes > redlatch.MaxNodes:
		return fmt.Errorf("-nodes is %d: it must be from 1 to %d", p.Nodes, redlatch.MaxNodes)
	case p.Hold < 0 || p.Hold > time.Minute:
		return fmt.Errorf("-hold is %v: it must be from 0 to 1m", p.Hold)
	}
	return nil
}

// soak starts the servers and the processes, and sums up what they counted.
func soak(ctx context.Context, p plan) (*counts, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errors.New("redis-server is not installed: make deps installs it")
	}
	dir, err := os.MkdirTemp("", "soak")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	p.File = filepath.Join(dir, "held")
	servers := make([]*redisproc.Server, p.Nodes)
	for i := range servers {
		servers[i] = &redisproc.Server{Program: program, Dir: filepath.Join(dir, strconv.Itoa(i))}
		defer servers[i].Kill()
	}
	if err := redisproc.StartAll(ctx, servers...); err != nil {
		return nil, err
	}
	for _, s := range servers {
		p.Addresses = append(p.Addresses, s.URL())
	}
	if err := declareNew(ctx, p); err != nil {
		return nil, err
	}
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	reports := make(chan report, p.Processes)
	for range p.Processes {
		if err := startProcess(ctx, string(text), reports); err != nil {
			return nil, err
		}
	}
	return collect(p, reports)
}

// declareNew brings the servers into service.
func declareNew(ctx context.Context, p plan) error {
	if p.Nodes == 1 {
		return nil // a single server is not guarded by default
	}
	client, err := open(p, redlatch.Options{})
	if err != nil {
		return err
	}
	defer client.Close()
	return fresh.Declare(ctx, client)
}

func open(p plan, opts redlatch.Options) (*redlatch.Client, error) {
	nodes, err := direct.Nodes(p.Addresses...)
	if err != nil {
		return nil, err
	}
	return redlatch.New(nodes, opts)
}

// report is what a process says: what it has counted so far, or that it ended.
type report struct {
	counts counts
	last   bool
	err    error
}

// startProcess starts this program again, as one of those that want the lock.
func startProcess(ctx context.Context, plan string, reports chan<- report) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), planVariable+"="+plan)
	cmd.Stderr, cmd.SysProcAttr = os.Stderr, owned.Apart()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	wait, err := owned.Start(cmd)
	if err != nil {
		return err
	}
	go func() {
		var r report
		for in := bufio.NewScanner(out); in.Scan(); {
			if r.err = json.Unmarshal(in.Bytes(), &r.counts); r.err != nil {
				break
			}
			reports <- r
		}
		r.last, r.err = true, errors.Join(r.err, wait())
		reports <- r
	}()
	return nil
}

// collect waits for all processes, and says now and then how it goes.
func collect(p plan, reports <-chan report) (*counts, error) {
	sum := &counts{Errors: map[string]int{}}
	begin, said, so := time.Now(), time.Now(), 0
	for left := p.Processes; left > 0; {
		r := <-reports
		if r.err != nil {
			return nil, fmt.Errorf("a process ended: %w", r.err)
		}
		if r.last {
			left--
			sum.add(&r.counts)
			continue
		}
		so = max(so, r.counts.Acquired*p.Processes)
		if time.Since(said) > 10*time.Second {
			said = time.Now()
			fmt.Fprintf(os.Stderr, "soak: %v of %v, about %d acquisitions\n", time.Since(begin).Round(time.Second), p.For, so)
		}
	}
	return sum, nil
}

// counts is what happened.
type counts struct {
	Acquired       int
	NoQuorum       int // Lock returned ErrNoQuorum
	Lost           int // the lease ended while it was held
	FailedReleases int
	TwoHolders     int
	Others         int // any other error of Lock
	Excused        int // of these, in moments in which the machine stood still
	Waited         []time.Duration
	Stall          time.Duration  // how late a timer was at the most
	Errors         map[string]int // the first words of each
}

func (c *counts) add(o *counts) {
	c.Acquired += o.Acquired
	c.NoQuorum += o.NoQuorum
	c.Lost += o.Lost
	c.FailedReleases += o.FailedReleases
	c.TwoHolders += o.TwoHolders
	c.Others += o.Others
	c.Excused += o.Excused
	c.Waited = append(c.Waited, o.Waited...)
	c.Stall = max(c.Stall, o.Stall)
	for text, n := range o.Errors {
		c.Errors[text] += n
	}
}

// well reports that all was as it should be, but for what the machine did.
func (c *counts) well() bool {
	return c.Acquired > 0 && c.TwoHolders == 0 && c.NoQuorum+c.Lost+c.FailedReleases+c.Others == c.Excused
}

func (c *counts) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "acquired         %d\n", c.Acquired)
	fmt.Fprintf(&b, "no quorum        %d\n", c.NoQuorum)
	fmt.Fprintf(&b, "lost leases      %d\n", c.Lost)
	fmt.Fprintf(&b, "failed releases  %d\n", c.FailedReleases)
	fmt.Fprintf(&b, "other errors     %d\n", c.Others)
	fmt.Fprintf(&b, "two holders      %d\n", c.TwoHolders)
	fmt.Fprintf(&b, "excused          %d (the machine stood still for longer than the TTL)\n", c.Excused)
	fmt.Fprintf(&b, "waited           median %v, 99%% %v\n", percentile(c.Waited, 50), percentile(c.Waited, 99))
	fmt.Fprintf(&b, "longest stall    %v\n", c.Stall.Round(time.Millisecond))
	for text, n := range c.Errors {
		fmt.Fprintf(&b, "%6d × %s\n", n, text)
	}
	return b.String()
}
