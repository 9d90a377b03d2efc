package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/internal/signals"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/supervise"
	"github.com/redlatch/redlatch/internal/redisproc"
)

// devFlags are the flags of dev.
type devFlags struct {
	servers int
	port    int
}

func newDev(say *reporter) *cobra.Command {
	f := &devFlags{}
	cmd := &cobra.Command{
		Use:   "dev [flags] [-- CMD [ARG...]]",
		Short: "Start a quorum of real servers on this machine, to try things on",
		Long: `Start several redis-server processes on this machine, declare them new, and keep
them until Ctrl-C, TERM or HUP; then end them, and remove their folder. Those that
do not end within 5s, or before a second signal, are killed. With CMD, run that
with REDLATCH_NODES set, and end the servers when it ends.

The servers listen on loopback alone, on free ports or on those from --port on,
and keep nothing. They are for trying things out, not for service: on one machine
they all fail together.

redis-server, or valkey-server, must be installed: dev installs nothing. On Linux
the servers end with dev even if it is killed with KILL; elsewhere they then stay,
and must be ended by the process ids that dev has shown.

Exit status: 0, or 130 and the like when a signal ended it while it started; with
CMD, that of CMD. 64 for a wrong command line, 69 if the servers cannot be
started, 126 or 127 if CMD cannot be run, or there is no server to start.`,
		Example: `  # in one terminal
  redlatch dev

  # in another, with the line that dev has shown
  export REDLATCH_NODES=redis://127.0.0.1:…
  redlatch run hello -- echo "this runs under a lock on five servers"

  # or in one go
  redlatch dev -n 3 -- redlatch doctor`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch dash := cmd.ArgsLenAtDash(); {
			case dash < 0 && len(args) > 0, dash > 0:
				return usageError(fmt.Errorf("dev takes no argument but CMD, and %q is one", args[0]), "write -- before CMD")
			case dash == 0 && len(args) == 0:
				return usageError(errors.New("there is no command after --"), "leave out -- to start the servers alone")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, say, args) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVarP(&f.servers, "servers", "n", 5, "start `N` servers, from 1 to 15")
	flags.IntVar(&f.port, "port", 0, "the first `PORT`; the others follow (default free ones)")
	say.registerOutput(flags, "output: text, or a line of JSON", "text", "json")
	return cmd
}

func (f *devFlags) run(cmd *cobra.Command, say *reporter, argv []string) error {
	switch {
	case f.servers < 1 || f.servers > redlatch.MaxNodes:
		return &redlatch.ConfigError{Field: "--servers", Value: f.servers, Bound: fmt.Sprintf("between 1 and %d", redlatch.MaxNodes)}
	case f.port != 0 && (f.port < 1 || f.port+f.servers-1 > 65535):
		return &redlatch.ConfigError{Field: "--port", Value: f.port, Bound: fmt.Sprintf("between 1 and %d, for %d servers", 65536-f.servers, f.servers)}
	}
	program, err := redisproc.Find()
	if err != nil {
		return &outcome{code: exitNotFound, event: "not_found", err: err, hint: redisproc.Install}
	}
	var path string
	if len(argv) > 0 {
		if path, err = exec.LookPath(argv[0]); err != nil {
			return cannotRun(argv[0], err, false)
		}
	}
	// Before there is anything to clean up.
	received := make(chan os.Signal, 4)
	signals.Notify(received, []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP})
	defer signal.Stop(received)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	started := make(chan error, 1)
	q := &devQuorum{program: program}
	defer q.stop(received)
	go func() { started <- q.start(ctx, f.servers, f.port) }()
	select {
	case err := <-started:
		if err != nil {
			return &outcome{code: exitNoQuorum, event: "no_quorum", err: err}
		}
	case s := <-received:
		cancel(&interruptedError{Signal: s.(syscall.Signal)})
		<-started
		return &outcome{code: exitSignal + int(s.(syscall.Signal)), signal: s.(syscall.Signal), event: "interrupted", err: fmt.Errorf("%v while the servers were started", s)}
	}
	if len(argv) > 0 {
		return q.with(path, argv, received)
	}
	if err := q.show(cmd, say); err != nil {
		return &outcome{code: exitOutput, event: "output", err: fmt.Errorf("cannot write to stdout: %w", err)}
	}
	select {
	case <-received:
		return nil
	case err := <-q.died:
		return &outcome{code: exitNoQuorum, event: "no_quorum", err: err}
	}
}

// show writes where the servers are.
func (q *devQuorum) show(cmd *cobra.Command, say *reporter) error {
	out := cmd.OutOrStdout()
	if say.format == "json" {
		var pids []int
		for _, s := range q.servers {
			pids = append(pids, s.Pid())
		}
		return writeJSON(out, struct {
			Event string   `json:"event"`
			Nodes []string `json:"nodes"`
			Pids  []int    `json:"pids"`
			Dir   string   `json:"dir"`
		}{"started", q.addresses(), pids, q.dir})
	}
	var b strings.Builder
	for _, s := range q.servers {
		fmt.Fprintf(&b, "# %s, process %d\n", s.URL(), s.Pid())
	}
	fmt.Fprintf(&b, "# they keep what they must in %s, and end with Ctrl-C\nexport %s=%s\n", q.dir, nodesVariable, strings.Join(q.addresses(), ","))
	_, err := fmt.Fprint(out, b.String())
	return err
}

// with runs CMD beside the servers. It is in our process group, so it gets a
// Ctrl-C itself; signals that were sent to us alone are forwarded.
func (q *devQuorum) with(path string, argv []string, received <-chan os.Signal) error {
	environment := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=") // they name other nodes
		return name == variable("state") || name == membershipVariable || name == nodesVariable
	})
	cmd := &exec.Cmd{
		Path: path, Args: argv, Env: append(environment, nodesVariable+"="+strings.Join(q.addresses(), ",")),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
	}
	if err := cmd.Start(); err != nil {
		return cannotRun(argv[0], err, true)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		select {
		case <-done:
			exit := supervise.ExitOf(cmd.ProcessState)
			return &outcome{code: exit.Code, signal: exit.Signal, event: "exited"}
		case s := <-received:
			if s != os.Interrupt || !isTerminal(os.Stdin) {
				cmd.Process.Signal(s)
			}
		case err := <-q.died:
			cmd.Process.Signal(os.Interrupt)
			select {
			case <-done:
			case <-time.After(5 * time.Second):
				cmd.Process.Kill()
			}
			return &outcome{code: exitNoQuorum, event: "no_quorum", err: err}
		}
	}
}
