//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	_ "modernc.org/sqlite" // the database that clients write to

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/internal/flag"
	"github.com/redlatch/redlatch/cmd/internal/signals"
	"github.com/redlatch/redlatch/internal/owned"
	"github.com/redlatch/redlatch/internal/redisproc"
	"github.com/redlatch/redlatch/internal/test/chaos"
)

// isClient reports whether these are the arguments of a client, which torture
// starts from this program.
func isClient(args []string) bool { return len(args) == 1 && args[0] == chaos.ClientVerb }

func runClient() int { return chaos.RunClient(os.Stdin, os.Stdout, os.Stderr) }

// flags are those of the command.
type flags struct {
	time    time.Duration
	seed    uint64
	faults  string
	clients int
	names   int
	servers int
	kinds   string
	noFence bool
	report  string
	keep    string
	list    bool
	quiet   bool
	output  string
}

// newRoot returns the command, and how it writes its verdict.
func newRoot() (*cobra.Command, *string) {
	f := &flags{}
	cmd := &cobra.Command{
		Use:   "redlatch-torture [flags]",
		Short: "Break a quorum of real servers on purpose, and check whether the locks hold",
		Long: `Start several servers and clients on this machine. The clients acquire locks and
write to a database under them, while servers are killed, frozen, emptied, cut off
and replaced, clocks are set, and clients are paused and killed. Then heal
everything, and check that every promise was kept: docs/testing/torture.md has the
rules of the judge.

Faults that --list marks as beyond break an assumption on which exclusion rests:
two leases at once are excused then, and must not harm the data. With --faults none
a request that fails is a violation too. With --no-fence the database checks no
tokens: paused clients then corrupt it.

redis-server, or valkey-server, must be installed; for other --kinds, PostgreSQL or
MariaDB. Faults that are not possible here are left out, and the verdict says so.

Exit status: 0 if every promise was kept; 1 if one was broken or the data corrupted;
64 for a wrong command line; 69 if the servers or clients cannot be started or
healed, or a kind of lock was never acquired; 74 if a file cannot be written.`,
		Example: `  redlatch-torture --for 2m --report torture.html
  redlatch-torture --faults kill,partition,pause --seed 7`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("redlatch-torture takes no argument, and %q is one", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	finish(cmd)
	flags := cmd.Flags()
	flags.SortFlags = false
	flag.Duration(flags, &f.time, "for", "", 30*time.Second, "inject faults for `DURATION`, as 30s or 5m")
	flags.Uint64Var(&f.seed, "seed", 0, "draw the faults from `NUMBER` (default a random one, which is shown)")
	flags.StringVar(&f.faults, "faults", "all", "inject `WHICH` faults: all, within, beyond, none, or names separated by commas")
	flags.IntVar(&f.clients, "clients", 8, "start `N` clients, from 1 to 100")
	flags.IntVar(&f.names, "names", 3, "which acquire locks on `N` names, from 1 to 100: one for writers alone, one for readers and writers, one for slots, one for all, and so on")
	flags.IntVarP(&f.servers, "servers", "n", 5, "start `N` servers, from 1 to 15")
	flags.StringVar(&f.kinds, "kinds", string(chaos.Redis), "start servers of these `KINDS`, in turn, separated by commas: redis, postgres, mariadb, sentinel")
	flags.BoolVar(&f.noFence, "no-fence", false, "let the database accept every write, to show what fencing is for")
	flags.StringVar(&f.report, "report", "", "write the history to `FILE` as a page of HTML")
	flags.StringVar(&f.keep, "keep", "", "write the history to the folder `DIR`, as lines of JSON")
	flags.BoolVar(&f.list, "list", false, "only list the faults")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "show no progress")
	flag.Word(flags, &f.output, "output", "o", "the verdict: text, or a line of JSON", "text", "json")
	for flag, words := range map[string][]string{"output": {"text", "json"}, "for": nil, "seed": nil, "clients": nil, "names": nil, "servers": nil, "kinds": {"redis", "postgres", "mariadb", "sentinel", "redis,postgres,mariadb"}} {
		cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
	cmd.RegisterFlagCompletionFunc("faults", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		words := []string{"all", "within", "beyond", "none"}
		for _, family := range chaos.Families() {
			words = append(words, family.Name+"\t"+family.About)
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	})
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	return cmd, &f.output
}

// run injects the faults and writes the verdict.
func (f *flags) run(cmd *cobra.Command) error {
	if f.list {
		return unwritten(f.listFaults(cmd.OutOrStdout()))
	}
	config, err := f.config(cmd)
	if err != nil {
		return err
	}
	// Before the run, not after it.
	page, err := f.files()
	if err != nil {
		return err
	}
	if page != nil {
		defer page.Close()
	}
	ctx, stop := signals.Context([]os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP})
	defer stop()
	view := newView(os.Stderr, f.time, f.quiet || f.output == "json")
	config.Watch = view.show
	config.Notice = func(text string) {
		view.clear()
		f.warn(text)
	}
	result, err := chaos.Run(ctx, config)
	view.clear()
	var bad *redlatch.ConfigError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &bad):
		return err
	case err != nil:
		return &failure{exitFailed, "failed", fmt.Errorf("%w; try again with --seed %d", err, config.Seed)}
	}
	if err := f.save(result, page); err != nil {
		return &failure{code: exitOutput, event: "output", err: err}
	}
	if err := f.writeVerdict(cmd.OutOrStdout(), result); err != nil {
		return unwritten(err)
	}
	if !result.Verdict.Held() || len(result.Verdict.Corruption) > 0 {
		return &failure{code: exitViolated, event: "violated"}
	}
	if err := result.Enough(); err != nil {
		return &failure{exitFailed, "incomplete", fmt.Errorf("%w; give it more time with --for, or other --clients", err)}
	}
	return nil
}

// warn writes a line to stderr.
func (f *flags) warn(text string) {
	if f.output == "json" {
		writeJSON(os.Stderr, struct {
			Event   string `json:"event"`
			Message string `json:"message"`
		}{"warning", text})
		return
	}
	fmt.Fprintf(os.Stderr, "redlatch-torture: %s\n", text)
}

// unwritten is the failure of a stdout that cannot be written; nil for no error.
func unwritten(err error) error {
	if err == nil {
		return nil
	}
	return &failure{code: exitOutput, event: "output", err: fmt.Errorf("stdout cannot be written: %w", err)}
}

// config is the run that the flags ask for.
func (f *flags) config(cmd *cobra.Command) (chaos.Config, error) {
	families, err := chaos.Choose(f.faults)
	if err != nil {
		return chaos.Config{}, &failure{exitUsage, "usage", fmt.Errorf("%w; redlatch-torture --list describes them", err)}
	}
	for _, bound := range []struct {
		flag               string
		value, least, most int
	}{{"--clients", f.clients, 1, 100}, {"--names", f.names, 1, 100}, {"--servers", f.servers, 1, redlatch.MaxNodes}} {
		if bound.value < bound.least || bound.value > bound.most {
			return chaos.Config{}, &redlatch.ConfigError{Field: bound.flag, Value: bound.value, Bound: fmt.Sprintf("between %d and %d", bound.least, bound.most)}
		}
	}
	if f.time < time.Second || f.time > 2*time.Hour {
		return chaos.Config{}, &redlatch.ConfigError{Field: "--for", Value: f.time, Bound: "between 1s and 2h"}
	}
	kinds, err := chaos.ParseServerKinds(f.kinds)
	if err != nil {
		return chaos.Config{}, &failure{code: exitUsage, event: "usage", err: fmt.Errorf("--kinds: %w", err)}
	}
	var nodes []chaos.ServerKind
	for i := range f.servers {
		nodes = append(nodes, kinds[i%len(kinds)])
	}
	program := ""
	if slices.Contains(nodes, chaos.Redis) || slices.Contains(nodes, chaos.Sentinel) {
		if program, err = redisproc.Find(); err != nil {
			return chaos.Config{}, &failure{exitFailed, "no_server", fmt.Errorf("%w; %s", err, redisproc.Install)}
		}
	}
	if !cmd.Flags().Changed("seed") {
		f.seed = uint64(rand.Uint32())
	}
	return chaos.Config{
		Program: program, Path: owned.Self(), Args: []string{"redlatch-torture", chaos.ClientVerb}, Nodes: nodes, Clients: f.clients, Names: f.names,
		For: f.time, Seed: f.seed, Faults: families, Least: 300 * time.Millisecond, Most: 1500 * time.Millisecond, Fenced: !f.noFence,
	}, nil
}

// files makes the files that the flags name, and returns that of the page, if
// there is one.
func (f *flags) files() (*os.File, error) {
	if f.keep != "" {
		if err := os.MkdirAll(f.keep, 0o755); err != nil {
			return nil, &failure{code: exitOutput, event: "output", err: fmt.Errorf("--keep: %w", err)}
		}
	}
	if f.report == "" {
		return nil, nil
	}
	page, err := os.Create(f.report)
	if err != nil {
		return nil, &failure{code: exitOutput, event: "output", err: fmt.Errorf("--report: %w", err)}
	}
	return page, nil
}

// save writes the files that the flags name.
func (f *flags) save(r *chaos.Result, page *os.File) error {
	if page != nil {
		if err := errors.Join(r.Page(page), page.Close()); err != nil {
			return fmt.Errorf("--report: %w", err)
		}
	}
	if f.keep != "" {
		if err := r.Save(f.keep); err != nil {
			return fmt.Errorf("--keep: %w", err)
		}
	}
	return nil
}
