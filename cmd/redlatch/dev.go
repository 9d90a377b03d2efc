package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
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
		Long: `Start several redis-server (or valkey-server) processes on loopback, mark them as
new, and print the line to export. Ctrl-C ends them and removes their folder. With
CMD, run that with REDLATCH_NODES set, and end the servers with it. They keep
nothing, and are for trying things out.`,
		Example: `  redlatch dev -n 3 -- redlatch doctor`,
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
	flags.IntVarP(&f.servers, "servers", "n", 5, "start `N` servers, from 1 to 15")
	flags.IntVar(&f.port, "port", 0, "the first `PORT`; the others follow (default free ones)")
	say.registerJSON(flags, "write JSON to stdout instead of text")
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
	if err := q.show(cmd.OutOrStdout(), say); err != nil {
		return err
	}
	select {
	case <-received:
		return nil
	case err := <-q.died:
		return &outcome{code: exitNoQuorum, event: "no_quorum", err: err}
	}
}

// show writes where the servers are.
func (q *devQuorum) show(out io.Writer, say *reporter) error {
	var pids []int
	var b strings.Builder
	for _, s := range q.servers {
		pids = append(pids, s.Pid())
		fmt.Fprintf(&b, "# %s, process %d\n", s.URL(), s.Pid())
	}
	fmt.Fprintf(&b, "# they keep what they must in %s, and end with Ctrl-C\nexport %s=%s\n", q.dir, nodesVariable, strings.Join(q.addresses(), ","))
	return say.print(out, fields{}.add("event", "started").add("nodes", q.addresses()).add("pids", pids).add("dir", q.dir), b.String())
}

// with runs CMD beside the servers. It is in our process group, so it gets a
// Ctrl-C itself; signals that were sent to us alone are forwarded.
func (q *devQuorum) with(path string, argv []string, received <-chan os.Signal) error {
	environment := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=") // they name other nodes
		return name == membershipVariable || name == nodesVariable
	})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cmd := exec.CommandContext(ctx, path, argv[1:]...)
	cmd.Args[0], cmd.Env = argv[0], append(environment, nodesVariable+"="+strings.Join(q.addresses(), ","))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, 5*time.Second
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
			cancel()
			<-done
			return &outcome{code: exitNoQuorum, event: "no_quorum", err: err}
		}
	}
}

// devQuorum is a number of servers of our own.
type devQuorum struct {
	program string
	dir     string
	servers []*redisproc.Server
	died    chan error // gets an error when a server ends by itself
}

func (q *devQuorum) addresses() []string {
	var all []string
	for _, s := range q.servers {
		all = append(all, s.URL())
	}
	return all
}

// start starts the servers, waits until they answer, and declares them new.
func (q *devQuorum) start(ctx context.Context, n, port int) error {
	var err error
	if q.dir, err = os.MkdirTemp("", "redlatch-dev-"); err != nil {
		return fmt.Errorf("there is no folder for the servers: %w", err)
	}
	q.died = make(chan error, n)
	for i := range n {
		s := &redisproc.Server{
			Program: q.program, Dir: filepath.Join(q.dir, strconv.Itoa(i+1)),
			Settings: []string{"--maxmemory-policy", "noeviction"},
		}
		if port != 0 {
			s.Port = port + i
			if err := portIsFree(s.Port); err != nil {
				return err
			}
		}
		q.servers = append(q.servers, s)
	}
	if err := redisproc.StartAll(ctx, q.servers...); err != nil {
		return err
	}
	for _, s := range q.servers {
		go func() { q.died <- s.Wait() }()
	}
	return q.declare(ctx)
}

// declareLimit is how long servers that answer may take to be declared new.
const declareLimit = 20 * time.Second

// declare marks the servers as new.
func (q *devQuorum) declare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, declareLimit)
	defer cancel()
	client, err := redlatch.Open(strings.Join(q.addresses(), ","), &redlatch.Options{Guard: redlatch.GuardOn, NodeTimeout: declareLimit})
	if err != nil {
		return err
	}
	defer client.Close()
	if _, err = admin.New(client).Init(ctx, &admin.InitOptions{AssumeFresh: true}); err != nil {
		return fmt.Errorf("the servers cannot be marked: %w", err)
	}
	return nil
}

// stopLimit is how long servers may take to end.
const stopLimit = 5 * time.Second

// stop ends the servers, each by its own process, and removes their folder.
// Those that are left after a while, or when another signal comes, are killed.
func (q *devQuorum) stop(signals <-chan os.Signal) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, s := range q.servers {
			s.Signal(terminateSignal)
		}
		for _, s := range q.servers {
			s.Wait()
		}
	}()
	select {
	case <-ended:
	case <-time.After(stopLimit):
	case <-signals:
	}
	for _, s := range q.servers {
		s.Kill() // does nothing to those that have ended
	}
	if q.dir != "" {
		os.RemoveAll(q.dir)
	}
}

func portIsFree(port int) error {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("port %d is not free; try another --port, or none: %w", port, errors.Unwrap(err))
	}
	return l.Close()
}
