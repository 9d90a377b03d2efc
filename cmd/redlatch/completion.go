package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
)

func newCompletion() *cobra.Command {
	shells := []string{"bash", "zsh", "fish"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print the shell completion script",
		Long: `Print a script for bash, zsh or fish that completes commands, flags,
their values, and the names of locks. What follows -- is completed as a command
line of its own. For the names the nodes are asked that the environment and the
settings file name.`,
		Example: `  # bash, with its bash-completion installed
  source <(redlatch completion bash)

  # zsh
  redlatch completion zsh > "${fpath[1]}/_redlatch"

  # fish
  redlatch completion fish > ~/.config/fish/completions/redlatch.fish`,
		ValidArgs: shells,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError(fmt.Errorf("completion takes one shell, and %d are given", len(args)), "try bash, zsh or fish")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			out, root := cmd.OutOrStdout(), cmd.Root()
			switch args[0] {
			case "bash":
				return errors.Join(root.GenBashCompletionV2(out, true), write(out, afterDashesBash))
			case "zsh":
				var text strings.Builder
				err := root.GenZshCompletion(&text)
				// The last lines call the function, which must be ours by then.
				last := strings.LastIndex(text.String(), "\n# don't run the completion function")
				if last < 0 {
					last = text.Len()
				}
				return errors.Join(err, write(out, text.String()[:last]+afterDashesZsh+text.String()[last:]))
			case "fish":
				return errors.Join(root.GenFishCompletion(out, true), write(out, afterDashesFish))
			}
			return usageError(fmt.Errorf("unknown shell %q: must be bash, zsh or fish", args[0]), "try redlatch completion bash")
		},
	}
}

func write(out io.Writer, text string) error {
	_, err := io.WriteString(out, text)
	return err
}

// completeAll sets for every command how its flags and arguments are completed.
func completeAll(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		switch {
		case strings.Contains(f.Value.Type(), "|"):
			cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(strings.Split(f.Value.Type(), "|"), cobra.ShellCompDirectiveNoFileComp))
		case !slices.Contains([]string{"state", "password-file", "page-password-file", "tls-cert", "tls-key"}, f.Name) && f.Value.Type() != "bool":
			cmd.RegisterFlagCompletionFunc(f.Name, cobra.NoFileCompletions)
		}
	})
	switch cmd.Name() {
	case "run", "lock", "ls", "show", "watch", "break":
		cmd.ValidArgsFunction = completeName
	case "extend", "unlock", "init", "doctor", "dev", "ui", "version":
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	for _, sub := range cmd.Commands() {
		completeAll(sub)
	}
}

// completeLimit is how long a completion may take.
const completeLimit = time.Second

// completeName completes the name of a lock with those that the nodes know.
// After an error it offers nothing.
func completeName(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp // the shell completes what follows --
	}
	const none = cobra.ShellCompDirectiveNoFileComp
	if applySettings(cmd, &reporter{w: io.Discard}) != nil {
		return nil, none
	}
	f := &nodeFlags{}
	f.nodes, _ = cmd.Flags().GetStringArray("nodes")
	f.state, _ = cmd.Flags().GetString("state")
	f.membership, _ = cmd.Flags().GetString("membership")
	f.passwordFile, _ = cmd.Flags().GetString("password-file")
	f.guard.Set(cmd.Flags().Lookup("guard").Value.String())
	client, err := f.client(redlatch.Options{NodeTimeout: completeLimit})
	if err != nil {
		return nil, none
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), completeLimit)
	defer cancel()
	survey, _ := admin.New(client).List(ctx)
	var names []string
	for i := range survey.Locks {
		if l := &survey.Locks[i]; strings.HasPrefix(l.Name, begun) && harmless(l.Name) == l.Name {
			names = append(names, l.Name+"\t"+stateOf(l))
		}
	}
	return names, none
}
