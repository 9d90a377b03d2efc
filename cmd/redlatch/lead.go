package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/supervise"
)

func newLead(say *reporter) *cobra.Command {
	f := &runFlags{onLost: supervise.Term, conflictCode: exitHeld}
	cmd := &cobra.Command{
		Use:   "lead [flags] NAME -- CMD [ARG...]",
		Short: "Run a command in one of many processes, the leader",
		Long: `Wait for the lock NAME, which only the leader holds, and run CMD while
holding it. Start it on as many machines as you like: CMD runs on one.

When the lock is being lost, CMD is ended before the deadline as with run, and
then lead waits for the lock again: CMD never runs twice at a time. It waits for
other leaders and for nodes without end. When CMD ends by itself, or lead is
interrupted, the lock is released, the next candidate leads at once, and lead
ends.

CMD gets what run gives it: a process group of its own, signals, and
REDLATCH_NAME, REDLATCH_TOKEN, REDLATCH_OWNER and REDLATCH_DEADLINE in its
environment. The token grows with every term: pass it to what CMD writes to.
--metrics and --log-format are those of run; the metrics are of the last term.

Exit status: CMD's own, or
   64  the command line is wrong, or redlatch itself runs under the lock NAME
   73  the file of --metrics cannot be written, and CMD did not run
   79  the lock was lost, and CMD could not be ended
  126  CMD cannot be run        127  CMD is not found
128+N  CMD, or the wait for the lock, was ended by signal N`,
		Example: `  # one scheduler of as many as are started
  redlatch lead --nodes redis://a:6379,redis://b:6379,redis://c:6379 scheduler -- ./scheduler

  # a dead leader is replaced after 3 seconds; a term is an hour at most
  redlatch lead --ttl 3s --max-hold 1h scheduler -- ./scheduler`,
		Args: leadArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.onLost == supervise.Ignore {
				return outcomeOf(&redlatch.ConfigError{Field: "--on-lost", Value: f.onLost.String(), Bound: "term or kill: CMD must end before another process leads"})
			}
			return f.ended(say, cmd, args, (*task).lead)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	f.register(flags)
	f.registerHold(flags)
	say.register(flags)
	return cmd
}

// leadArgs checks that the arguments are NAME -- CMD.
func leadArgs(cmd *cobra.Command, args []string) error {
	if err := runArgs(cmd, args); err != nil {
		return err
	}
	if n := cmd.ArgsLenAtDash(); n > 1 {
		return usageError(fmt.Errorf("there are %d names before --: lead takes one", n), "quote a name with spaces in it")
	}
	return nil
}

// lead runs CMD in every term.
func (t *task) lead() *outcome {
	outage := false
	for {
		end, lost := t.run()
		switch {
		case lost:
			t.say.lostTerm(t.name(), end)
			outage = false
		case end.code == exitNoQuorum && end.run == nil:
			if !outage {
				t.say.warn(t.name(), "%v; waiting for them", end.err)
			}
			outage = true
		default:
			return end
		}
	}
}
