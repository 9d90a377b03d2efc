//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/internal/signals"
	"github.com/redlatch/redlatch/internal/chaos"
	"github.com/redlatch/redlatch/internal/owned"
)

// isTortureClient reports whether these arguments make this process a client
// that is tortured.
func isTortureClient(args []string) bool { return len(args) == 1 && args[0] == chaos.ClientVerb }

func runTortureClient() int { return chaos.RunClient(os.Stdin, os.Stdout, os.Stderr) }

// exitViolated is the exit code of a run in which a promise was broken, or the
// unfenced resource corrupted.
const exitViolated = 1

// tortureFlags are the flags of torture.
type tortureFlags struct {
	time    time.Duration
	seed    uint64
	faults  string
	clients int
	names   int
	servers int
	noFence bool
	report  string
	keep    string
	list    bool
}

func newTorture(say *reporter) *cobra.Command {
	f := &tortureFlags{}
	cmd := &cobra.Command{
		Use:   "torture [flags]",
		Short: "Break a quorum of real servers on purpose, and see whether the locks hold",
		Long: `Start several redis-server processes and several clients on this machine, and have
the clients take locks and write to a database under them while the servers are
killed, frozen, emptied, cut off, replaced and lied to about the time, and the
clients are paused and killed. Then heal everything, and judge what the clients saw:

  overlap          no two leases on one name were valid at once
  token order      tokens only grew
  stale write      the fenced database took no write of a holder that was too late
  lost update      and lost none of those it took
  ghost            no lock was left on any server when its time was over
  liveness         every client got a lock again after the faults
  linearizability  the history is one that a lock with a token can have (porcupine)
  extension        no lock was extended after another had been given it

Some faults, which --list marks as beyond, break an assumption on which exclusion
rests: see docs/guarantees.md. Two leases at once are excused by them alone, are
counted, and must not harm the data. With --faults within none are excused.

--no-fence has the database check no tokens: paused clients then corrupt it.

Nothing but redis-server, or valkey-server, is needed. Moving the servers' clocks
needs a C compiler on Linux; dropping packets needs root, ip and nft. What is
missing is said, and left out; the verdict says so too.

Exit status: 0 if every promise was kept; 1 if one was broken, or if the data was
corrupted without fencing; 64 for a wrong command line; 69 if there is no server, or
the servers or clients cannot be started or healed; 130 and the like for a signal.`,
		Example: `  redlatch torture
  redlatch torture --for 2m --report torture.html
  redlatch torture --faults kill,partition,pause --seed 7
  redlatch torture --no-fence --faults pause
  redlatch torture --list`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError(fmt.Errorf("torture takes no argument, and %q is one", args[0]), "try redlatch torture --help")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd, say) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.DurationVar(&f.time, "for", 30*time.Second, "for how long faults strike, as 30s or 5m")
	flags.Uint64Var(&f.seed, "seed", 0, "the `number` from which faults are drawn (default one by chance, which is shown)")
	flags.StringVar(&f.faults, "faults", "all", "`which` faults strike: all, within, beyond, or names separated by commas")
	flags.IntVar(&f.clients, "clients", 8, "start `N` clients, from 1 to 100")
	flags.IntVar(&f.names, "names", 2, "for which they take locks on `N` names, from 1 to 100")
	flags.IntVarP(&f.servers, "servers", "n", 5, "start `N` servers, from 3 to 15")
	flags.BoolVar(&f.noFence, "no-fence", false, "have the database take every write, to see what fencing is for")
	flags.StringVar(&f.report, "report", "", "write the history to `FILE` as a page of HTML")
	flags.StringVar(&f.keep, "keep", "", "write the history to the folder `DIR`, as lines of JSON")
	flags.BoolVar(&f.list, "list", false, "list the faults, and do nothing else")
	flags.BoolVarP(&say.quiet, "quiet", "q", false, "show no progress")
	say.registerOutput(flags, "how the verdict is told: in words, or as a line of JSON", "text", "json")
	cmd.RegisterFlagCompletionFunc("faults", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		words := []string{"all", "within", "beyond"}
		for _, family := range chaos.Families() {
			words = append(words, family.Name+"\t"+family.About)
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

func (f *tortureFlags) run(cmd *cobra.Command, say *reporter) error {
	if f.list {
		return unwritten(listFaults(cmd, say))
	}
	config, err := f.config(cmd)
	if err != nil {
		return err
	}
	// Before the work is done, not after it.
	page, err := f.outputs()
	if err != nil {
		return err
	}
	if page != nil {
		defer page.Close()
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	received := make(chan os.Signal, 4)
	signals.Notify(received, []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP})
	defer signal.Stop(received)
	go func() {
		if s, ok := (<-received).(syscall.Signal); ok {
			cancel(&interruptedError{Signal: s})
		}
	}()
	view := newTortureView(say, f.time)
	config.Watch = view.show
	config.Notice = func(text string) {
		view.clear()
		say.warn("", "%s", text)
	}
	result, err := chaos.Run(ctx, config)
	view.clear()
	var bad *redlatch.ConfigError
	switch {
	case ctx.Err() != nil:
		return ended(ctx)
	case errors.As(err, &bad):
		return err
	case err != nil:
		return &outcome{code: exitNoQuorum, event: "failed", err: err, hint: fmt.Sprintf("try again with --seed %d", config.Seed)}
	}
	if err := f.save(result, page); err != nil {
		return &outcome{code: exitOutput, event: "output", err: err}
	}
	if err := f.tell(cmd, say, result); err != nil {
		return unwritten(err)
	}
	if !result.Verdict.Held() || len(result.Verdict.Corruption) > 0 {
		return &outcome{code: exitViolated, event: "violated"}
	}
	return nil
}

// config is the run that the flags ask for.
func (f *tortureFlags) config(cmd *cobra.Command) (chaos.Config, error) {
	families, err := chaos.Choose(f.faults)
	if err != nil {
		return chaos.Config{}, usageError(err, "redlatch torture --list tells what they do")
	}
	for _, bound := range []struct {
		flag               string
		value, least, most int
	}{{"--clients", f.clients, 1, 100}, {"--names", f.names, 1, 100}, {"--servers", f.servers, 3, redlatch.MaxNodes}} {
		if bound.value < bound.least || bound.value > bound.most {
			return chaos.Config{}, &redlatch.ConfigError{Field: bound.flag, Value: bound.value, Bound: fmt.Sprintf("from %d to %d", bound.least, bound.most)}
		}
	}
	if f.time < time.Second || f.time > 2*time.Hour {
		return chaos.Config{}, &redlatch.ConfigError{Field: "--for", Value: f.time, Bound: "from 1s to 2h"}
	}
	program, err := serverProgram()
	if err != nil {
		missing := outcomeOf(err)
		missing.code, missing.event = exitNoQuorum, "no_server"
		return chaos.Config{}, missing
	}
	if !cmd.Flags().Changed("seed") {
		f.seed = uint64(rand.Uint32())
	}
	return chaos.Config{
		Program: program, Path: owned.Self(), Args: []string{"redlatch", chaos.ClientVerb}, Nodes: f.servers, Clients: f.clients, Names: f.names,
		For: f.time, Seed: f.seed, Faults: families, Least: 300 * time.Millisecond, Most: 1500 * time.Millisecond, Fenced: !f.noFence,
	}, nil
}

// outputs makes what is to be written to, and returns the file of the page, if
// there is to be one.
func (f *tortureFlags) outputs() (*os.File, error) {
	if f.keep != "" {
		if err := os.MkdirAll(f.keep, 0o755); err != nil {
			return nil, &outcome{code: exitOutput, event: "output", err: fmt.Errorf("--keep: %w", err)}
		}
	}
	if f.report == "" {
		return nil, nil
	}
	page, err := os.Create(f.report)
	if err != nil {
		return nil, &outcome{code: exitOutput, event: "output", err: fmt.Errorf("--report: %w", err)}
	}
	return page, nil
}

func (f *tortureFlags) save(r *chaos.Result, page *os.File) error {
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

// listFaults lists the kinds of faults.
func listFaults(cmd *cobra.Command, say *reporter) error {
	out := cmd.OutOrStdout()
	type fault struct {
		Name   string `json:"name"`
		Beyond bool   `json:"beyond"`
		About  string `json:"about"`
	}
	for _, f := range chaos.Families() {
		if say.format == "json" {
			if err := writeJSON(out, fault{f.Name, f.Beyond, f.About}); err != nil {
				return err
			}
			continue
		}
		kind := "within"
		if f.Beyond {
			kind = "beyond"
		}
		if _, err := fmt.Fprintf(out, "%-14s %s  %s\n", f.Name, kind, f.About); err != nil {
			return err
		}
	}
	return nil
}

// tell writes the verdict.
func (f *tortureFlags) tell(cmd *cobra.Command, say *reporter, r *chaos.Result) error {
	out := cmd.OutOrStdout()
	if say.format == "json" {
		return writeJSON(out, r.Summary())
	}
	v := r.Verdict
	var b strings.Builder
	colour := "32"
	if !v.Held() || len(v.Corruption) > 0 {
		colour = "31"
	}
	fmt.Fprintf(&b, "%s\n", paint(out, colour, r.Headline()))
	fmt.Fprintf(&b, "seed %d: %d faults of %d kinds, out of %d, in %v; %d acquisitions, %d writes, %d stale ones refused, %d leases lost\n",
		r.Seed, v.Faults, len(r.Struck()), len(r.Ran), f.time, v.Acquisitions, v.Writes, v.Refused, v.Lost)
	some(&b, "violation", v.Violations)
	some(&b, "corruption", v.Corruption)
	some(&b, "outside the assumptions", v.Excused)
	for _, l := range r.LeftOut {
		why, _, _ := strings.Cut(l.Why, "\n")
		fmt.Fprintf(&b, "not run: %s: %s\n", l.Family, why)
	}
	if f.report != "" {
		fmt.Fprintf(&b, "the history is drawn in %s\n", f.report)
	}
	_, err := fmt.Fprint(out, b.String())
	return err
}

// some writes the first few findings, and how many more there are.
func some(b *strings.Builder, what string, list []chaos.Finding) {
	const few = 5
	for i, f := range list {
		if i == few {
			fmt.Fprintf(b, "%s: and %d more\n", what, len(list)-few)
			return
		}
		fmt.Fprintf(b, "%s: %s: %s: %s", what, f.Rule, f.Name, f.Text)
		if f.Excuse != "" {
			fmt.Fprintf(b, " (%s)", f.Excuse)
		}
		b.WriteString("\n")
	}
}
