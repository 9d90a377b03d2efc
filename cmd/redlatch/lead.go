package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/supervise"
)

func newLead(say *reporter) *cobra.Command {
	f := &runFlags{conflictCode: exitHeld}
	cmd := &cobra.Command{
		Use:   "lead [flags] NAME -- CMD [ARG...]",
		Short: "Run a command in one of many processes, the leader",
		Long: `Wait for the lock NAME, which only the leader holds, and run CMD while holding it.
Start it on as many machines as you like: CMD runs on one. If the lock is lost, CMD
is ended and lead waits for the lock again. If CMD ends by itself, or lead is
interrupted, the lock is released and the next candidate leads at once.

CMD gets the environment and the signals that run gives it. The token grows with
every term.`,
		Example: `  redlatch lead --ttl 3s --nodes redis://a,redis://b,redis://c scheduler -- ./scheduler`,
		Args:    leadArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.onLost == supervise.Ignore {
				return outcomeOf(&redlatch.ConfigError{Field: "--on-lost", Value: string(f.onLost), Bound: "term or kill: CMD must end before another process leads"})
			}
			return f.ended(say, cmd, args, (*task).lead)
		},
	}
	flags := cmd.Flags()
	f.register(flags, say)
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
	t.f.patient = true
	for {
		end, lost := t.run()
		if !lost {
			return end
		}
		t.say.lostTerm(t.name(), end)
	}
}
