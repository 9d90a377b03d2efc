// Command redlatch takes distributed locks for the shell: on Redis servers, or
// with no server at all in a file of this machine.
package main

import (
	"cmp"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/demo"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/supervise"
	"github.com/redlatch/redlatch/internal/terminal"
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
	const setUp = "Set-up, and trying things out:"
	cobra.EnableCommandSorting = false
	for _, group := range []struct {
		title string
		verbs []func(*reporter) *cobra.Command
	}{
		{"Jobs:", []func(*reporter) *cobra.Command{newRun, newLead}},
		{"Scripts with several steps:", []func(*reporter) *cobra.Command{newLock, newExtend, newUnlock}},
		{"Operators:", []func(*reporter) *cobra.Command{newLs, newShow, newWatch, newUI, newBreak, newDoctor}},
		{setUp, []func(*reporter) *cobra.Command{newInit, newDemo, newDev, newSchema, newInstall, newVersion}},
	} {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title})
		for _, new := range group.verbs {
			verb := new(say)
			verb.Long += "\n\n" + exitStatus(verb.Name())
			verb.GroupID = group.title
			root.AddCommand(verb)
		}
	}
	root.SetCompletionCommandGroupID(setUp)
	root.AddCommand(
		&cobra.Command{Use: "nodes", Short: "How the addresses of nodes are written", Long: nodesHelp},
		&cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: exitStatus("")})
	for _, verb := range packagersVerbs {
		root.AddCommand(verb())
	}
	root.SetHelpCommand(newHelp())
	root.SetHelpCommandGroupID(setUp)
	root.InitDefaultCompletionCmd()
	completeAll(root)
	cobra.AddTemplateFunc("wrapped", func(flags *pflag.FlagSet) string {
		return flags.FlagUsagesWrapped(min(cmp.Or(terminal.Width(os.Stdout), helpWidth), helpWidth+20))
	})
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), ".LocalFlags.FlagUsages", "wrapped .LocalFlags", 1))
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
