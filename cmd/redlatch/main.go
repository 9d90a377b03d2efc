// Command redlatch takes distributed locks for the shell: on Redis servers, or
// with no server at all in a file of this machine.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/demo"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/supervise"
)

func main() {
	args := os.Args[1:]
	if code, is := supervise.Helper(args); is {
		os.Exit(code)
	}
	if code, is := demo.Child(args); is {
		os.Exit(code)
	}
	execute(args).leave()
}

// execute runs the command line and returns how it ended.
func execute(args []string) *outcome {
	say := &reporter{w: os.Stderr}
	root := newRoot(say)
	root.SetArgs(args)
	cmd, err := root.ExecuteC()
	if err == nil {
		return &outcome{}
	}
	end := outcomeOf(err)
	say.end(end)
	failEval(cmd, say, end.code)
	return end
}

// packagersVerbs are verbs that only builds with a tag of theirs have.
var packagersVerbs []func() *cobra.Command

func newRoot(say *reporter) *cobra.Command {
	root := &cobra.Command{
		Use:   "redlatch",
		Short: "Distributed locks for the shell",
		Long: `Distributed locks for the shell: run a command while holding a lock, so that it
runs once at a time, on this machine or on many.

Without --nodes the lock is in a file of this user on this machine. With the
addresses of one or more servers it holds between all machines that use them; three
or five servers tolerate the loss of one or two.

A flag that is not given is taken from the environment, as REDLATCH_ and its name in
capitals, and else from the file $REDLATCH_CONFIG, else
$XDG_CONFIG_HOME/redlatch/config, else ~/.config/redlatch/config: lines of key =
value. REDLATCH_PASSWORD is the password for addresses without one.`,
		Example: `  redlatch run nightly-report -- ./report.sh
  redlatch run -n --nodes redis://a:6379,redis://b:6379,redis://c:6379 backup -- ./backup.sh
  redlatch doctor`,
		Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asked, _ := cmd.Flags().GetBool("version"); asked {
				return writeVersion(cmd)
			}
			return cmd.Help()
		},
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return applySettings(cmd, say)
		},
	}
	root.Flags().Bool("version", false, "print the version")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usageError(wrongValue(err), meantFlag(cmd, err)) })
	for _, new := range []func(*reporter) *cobra.Command{newRun, newLead, newLock, newExtend, newUnlock, newLs, newShow, newWatch, newUI, newBreak, newDoctor, newDemo, newDev, newInit} {
		verb := new(say)
		verb.Long += "\n\n" + exitStatus(verb.Name())
		root.AddCommand(verb)
	}
	root.AddCommand(newSchema(), newInstall(), newVersion(say), newNodesTopic(), newExitTopic())
	for _, verb := range packagersVerbs {
		root.AddCommand(verb())
	}
	root.SetHelpCommand(newHelp())
	root.InitDefaultCompletionCmd()
	completeAll(root)
	return root
}

// newHelp is cobra's own help, but for a command that does not exist, which
// cobra answers with exit status 0.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
			if about, _, err := cmd.Root().Find(args); err == nil {
				for _, sub := range about.Commands() {
					if sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
						names = append(names, sub.Name()+"\t"+sub.Short)
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err == nil && about == cmd.Root() {
				err = unknownCommand(about, rest)
			}
			if err != nil {
				return err
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}
