// Command redlatch takes distributed locks for the shell: on Redis servers, or
// with no server at all in a file of this machine.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/cmd/internal/manual"
	"github.com/redlatch/redlatch/cmd/internal/release"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/supervise"
)

func main() {
	args := os.Args[1:]
	if code, is := supervise.Helper(args); is {
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
	say.settleLog(cmd, args)
	say.end(end)
	failEval(cmd, say, end.code)
	return end
}

func newRoot(say *reporter) *cobra.Command {
	root := &cobra.Command{
		Use:   "redlatch",
		Short: "Distributed locks for the shell",
		Long: `Distributed locks for the shell: run a command while holding a lock, so that it
runs once at a time, on this machine or on many.

Without --nodes the lock is in a file of this user on this machine. With the
addresses of one or more servers it holds between all machines that use them; three
or five servers tolerate the loss of one or two.`,
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
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usageError(err, meantFlag(cmd, err)) })
	root.AddCommand(newRun(say), newLead(say), newLock(say), newExtend(say), newUnlock(say), newLs(say), newShow(say), newWatch(say), newUI(say), newBreak(say), newDoctor(say), newDev(say), newInit(say), newSchema(), newInstall(), newVersion(say), newCompletion(), newMan(), newNodesTopic())
	root.SetHelpCommand(newHelp())
	root.CompletionOptions.DisableDefaultCmd = true
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

// newMan writes the manual pages. It is for packagers, and so is hidden.
func newMan() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the manual pages into a folder",
		Long:    "Write a manual page for every command into the folder DIR, which is made if it is not there.",
		Example: "  redlatch man build/man && man -l build/man/redlatch-run.1",
		Hidden:  true,
		Args:    oneArg("folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := manual.Write(cmd.Root(), args[0], settingsSection); err != nil {
				return &outcome{code: exitOutput, event: "output", err: fmt.Errorf("the manual cannot be written: %w", err)}
			}
			return nil
		},
	}
}

// settingsSection says from where else flags get their values.
func settingsSection(cmd *cobra.Command) string {
	if cmd.Flags().Lookup("nodes") == nil && cmd.HasParent() {
		return ""
	}
	return ".SH ENVIRONMENT AND FILES\n" + manual.Paragraphs(`A flag that is not given is taken from the environment, as REDLATCH_ and its name
in capitals, and else from the file $REDLATCH_CONFIG, else
$XDG_CONFIG_HOME/redlatch/config, else ~/.config/redlatch/config: lines of key =
value with the keys `+strings.Join(settings, ", ")+`. REDLATCH_PASSWORD is the password for addresses without one.
NO_COLOR leaves out colours.`)
}

func newVersion(say *reporter) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    `Print the version, the commit and its date, the Go release and the platform.`,
		Example: "  redlatch version\n  redlatch version -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if say.format == "json" {
				return unwritten(writeJSON(cmd.OutOrStdout(), release.Current()))
			}
			return writeVersion(cmd)
		},
	}
	say.registerOutput(cmd.Flags(), "write it in words, or as a line of JSON", "text", "json")
	return cmd
}

func writeVersion(cmd *cobra.Command) error {
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "redlatch %s\n", release.Current())
	return unwritten(err)
}
