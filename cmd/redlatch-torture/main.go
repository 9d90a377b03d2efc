//go:build unix

// Command redlatch-torture breaks a quorum of real servers on purpose, and checks
// whether the locks of redlatch hold. It is a command of its own, so that what it
// needs is not part of the command redlatch.
package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	_ "modernc.org/sqlite" // the database that clients write to

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/internal/flag"
	"github.com/redlatch/redlatch/cmd/internal/signals"
	"github.com/redlatch/redlatch/internal/childproc"
	"github.com/redlatch/redlatch/internal/redisproc"
	"github.com/redlatch/redlatch/internal/test/chaos"
	_ "github.com/redlatch/redlatch/store/etcd"
	_ "github.com/redlatch/redlatch/store/zookeeper"
)

// The exit codes. They are those of redlatch, except the first.
const (
	exitViolated = 1   // a promise was broken, or the unfenced data corrupted
	exitUsage    = 64  // the command line is wrong
	exitFailed   = 69  // there is no server, or it cannot be started or healed
	exitOutput   = 74  // the output cannot be written
	exitSignal   = 128 // plus the number of the signal
)

func main() {
	if slices.Equal(os.Args[1:], []string{chaos.ClientVerb}) {
		os.Exit(chaos.RunClient(os.Stdin, os.Stdout, os.Stderr))
	}
	ctx, stop := signals.Context([]os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP})
	code, err := torture(ctx, os.Args[1:])
	stop()
	if err != nil {
		warn(strings.TrimPrefix(err.Error(), "redlatch: "))
	}
	// By the signal that ended the run, so that a shell ends its loop.
	if signal, ok := errors.AsType[*signals.Error](err); ok {
		signals.DieBy(signal.Signal, false)
		code = exitSignal + int(signal.Signal)
	}
	os.Exit(code)
}

// warn writes a line to stderr.
func warn(text string) {
	fmt.Fprintln(os.Stderr, "redlatch-torture:", strings.Join(strings.Fields(text), " "))
}

const help = `Usage: redlatch-torture [flags]

Start several servers and clients on this machine. The clients acquire locks and
write to a database under them, while servers are killed, frozen, emptied, cut off
and replaced, clocks are set, and clients are paused and killed. Then heal
everything, and check that every promise was kept: docs/testing/torture.md has the
rules of the judge.

Faults at the edges are what operators do, on Redis and PostgreSQL: they change the
membership, break locks, and set all clocks back. --faults all leaves them out.

Faults that --list marks as beyond break an assumption on which exclusion rests:
two leases at once are excused then, and must not harm the data. With --faults none
a request that fails is a violation too. With --no-fence the database checks no
tokens: paused clients then corrupt it.

redis-server, or valkey-server, must be installed; for other --kinds, PostgreSQL,
MySQL, MariaDB, etcd or ZooKeeper. Faults that are not possible here are left out,
and the verdict says so.

Exit status: 0 if every promise was kept; 1 if one was broken or the data corrupted;
64 for a wrong command line; 69 if the servers or clients cannot be started or
healed, or a kind of lock was never acquired; 74 if a file cannot be written.

Example:
  redlatch-torture --faults kill,partition,pause --seed 7

Flags:
`

// flags are those of the command, and the run that they ask for.
type flags struct {
	chaos.Config
	keep string
	list bool
}

// parse reads the command line.
func parse(args []string) (*flags, error) {
	var faults, kinds string
	var servers int
	var noFence bool
	f, set := &flags{}, pflag.NewFlagSet("redlatch-torture", pflag.ContinueOnError)
	set.SortFlags = false
	set.Usage = func() { fmt.Print(help, set.FlagUsages()) }
	flag.Duration(set, &f.For, "for", "", 30*time.Second, "inject faults for `DURATION`, as 30s or 5m")
	set.Uint64Var(&f.Seed, "seed", uint64(rand.Uint32()), "draw the faults from `NUMBER`")
	set.Lookup("seed").DefValue = "a random one, which is shown"
	set.StringVar(&faults, "faults", "all", "inject `WHICH` faults: all, within, beyond, edges, none, or names separated by commas")
	set.IntVar(&f.Clients, "clients", 8, "start `N` clients, from 1 to 100")
	set.IntVar(&f.Names, "names", 3, "which acquire locks on `N` names, from 1 to 100: one for writers alone, one for readers and writers, one for slots, one for all, and so on")
	set.IntVarP(&servers, "servers", "n", 5, "start `N` servers, from 1 to 15")
	set.StringVar(&kinds, "kinds", string(chaos.Redis), "start servers of these `KINDS`, in turn, separated by commas: redis, postgres, mariadb, mysql, sentinel, etcd, zookeeper; the last two are clusters of three")
	set.BoolVar(&noFence, "no-fence", false, "let the database accept every write, to show what fencing is for")
	set.StringVar(&f.keep, "keep", "", "write the history to `FILE`, as lines of JSON")
	set.BoolVar(&f.list, "list", false, "only list the faults")
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	if set.NArg() > 0 {
		return nil, fmt.Errorf("redlatch-torture takes no argument, and %q is one", set.Arg(0))
	}
	for _, bound := range []struct {
		flag  string
		value int
		most  int
	}{{"--clients", f.Clients, 100}, {"--names", f.Names, 100}, {"--servers", servers, redlatch.MaxNodes}} {
		if bound.value < 1 || bound.value > bound.most {
			return nil, fmt.Errorf("%s is %d: must be between 1 and %d", bound.flag, bound.value, bound.most)
		}
	}
	if f.For < time.Second || f.For > 2*time.Hour {
		return nil, fmt.Errorf("--for is %v: must be between 1s and 2h", f.For)
	}
	every, err := chaos.ParseServerKinds(kinds)
	if err != nil {
		return nil, fmt.Errorf("--kinds: %w", err)
	}
	for i := range servers {
		f.Nodes = append(f.Nodes, every[i%len(every)])
	}
	f.Faults, err = chaos.Choose(faults)
	f.Path, f.Args = childproc.Self(), []string{"redlatch-torture", chaos.ClientVerb}
	f.Least, f.Most, f.Fenced, f.Notice = 300*time.Millisecond, 1500*time.Millisecond, !noFence, warn
	return f, err
}

// torture runs the command line, and returns the exit code.
func torture(ctx context.Context, args []string) (code int, err error) {
	f, err := parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		return 0, nil
	}
	if err != nil {
		return exitUsage, fmt.Errorf("%w; try redlatch-torture --help", err)
	}
	if f.list {
		for _, family := range chaos.Families() {
			fmt.Printf("%-14s %s  %s\n", family.Name, family.Group(), family.About)
		}
		return 0, nil
	}
	if slices.Contains(f.Nodes, chaos.Redis) || slices.Contains(f.Nodes, chaos.Sentinel) {
		if f.Program, err = redisproc.Find(); err != nil {
			return exitFailed, fmt.Errorf("%w; %s", err, redisproc.Install)
		}
	}
	var keep *os.File
	if f.keep != "" {
		// Before the run, not after it.
		if keep, err = os.Create(f.keep); err != nil {
			return exitOutput, fmt.Errorf("--keep: %w", err)
		}
		defer keep.Close()
	}
	result, err := chaos.Run(ctx, f.Config)
	if ctx.Err() != nil {
		return exitFailed, fmt.Errorf("ended by a signal: %w", context.Cause(ctx))
	}
	if err != nil {
		return exitFailed, fmt.Errorf("%w; try again with --seed %d", err, f.Seed)
	}
	if f.keep != "" {
		if err := errors.Join(result.Save(keep), keep.Close()); err != nil {
			return exitOutput, fmt.Errorf("--keep: %w", err)
		}
	}
	if _, err := fmt.Print(result); err != nil {
		return exitOutput, err
	}
	if !result.Verdict.Held() || len(result.Verdict.Corruption) > 0 {
		return exitViolated, nil
	}
	if err := result.Enough(); err != nil {
		return exitFailed, fmt.Errorf("%w; give it more time with --for, or other --clients", err)
	}
	return 0, nil
}
