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
		Long: `Print a script for bash, zsh or fish that completes commands, flags, their values,
and the names of locks, for which it asks the configured nodes.`,
		Example: `  source <(redlatch completion bash)
  redlatch completion zsh > "${fpath[1]}/_redlatch"
  redlatch completion fish > ~/.config/fish/completions/redlatch.fish`,
		ValidArgs: shells,
		Args:      oneArg("shell"),
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

// completeAll sets for every command how its flags and arguments are completed,
// and that help shows its flags in the order in which they were added.
func completeAll(cmd *cobra.Command) {
	cmd.Flags().SortFlags = false
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		switch {
		case strings.Contains(f.Value.Type(), "|"):
			cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(strings.Split(f.Value.Type(), "|"), cobra.ShellCompDirectiveNoFileComp))
		case !slices.Contains([]string{"password-file", "page-password-file", "tls-cert", "tls-key"}, f.Name) && f.Value.Type() != "bool":
			cmd.RegisterFlagCompletionFunc(f.Name, cobra.NoFileCompletions)
		}
	})
	switch cmd.Name() {
	case "run", "lock", "ls", "show", "watch", "break":
		cmd.ValidArgsFunction = completeName
	case "extend", "unlock", "init", "doctor", "demo", "dev", "ui", "version":
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
	f.nodes = distinct(f.nodes) // cobra parses the flags twice
	f.membership, _ = cmd.Flags().GetString("membership")
	f.passwordFile, _ = cmd.Flags().GetString("password-file")
	f.guard = cmd.Flags().Lookup("guard").Value.String()
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

// After -- there is another command line, and it is completed as one. Each
// shell has a way to do so, for commands such as nice or sudo.

// afterDashesBash follows what cobra generates for bash. bash-completion has
// _command_offset, in newer versions under another name. Without it, names of
// commands and files are completed.
const afterDashesBash = `
__redlatch_or_wrapped() {
    local i
    case "${COMP_WORDS[1]}" in run|dev)
        for ((i = 2; i < COMP_CWORD; i++)); do
            [[ ${COMP_WORDS[i]} == -- ]] || continue
            if declare -F _comp_command_offset >/dev/null; then
                _comp_command_offset $((i + 1))
            elif declare -F _command_offset >/dev/null; then
                _command_offset $((i + 1))
            elif ((COMP_CWORD == i + 1)); then
                COMPREPLY=($(compgen -c -- "${COMP_WORDS[COMP_CWORD]}"))
            fi
            return
        done
    esac
    __start_redlatch "$@"
}
complete -o default -F __redlatch_or_wrapped redlatch
`

// afterDashesZsh comes before what cobra generates for zsh calls its function.
const afterDashesZsh = `
functions[_redlatch_itself]=$functions[_redlatch]
_redlatch() {
    local i=${words[(i)--]}
    if [[ $words[2] == (run|dev) ]] && (( i < CURRENT )); then
        shift i words
        (( CURRENT -= i ))
        _normal
        return
    fi
    _redlatch_itself "$@"
}
`

// afterDashesFish follows what cobra generates for fish, which offers nothing
// there.
const afterDashesFish = `
function __redlatch_wrapped
    set -l words (commandline -opc)
    contains -- "$words[2]" run dev; and contains -- -- $words
end
function __redlatch_complete_wrapped
    set -l words (commandline -opc)
    set -l i (contains -i -- -- $words)
    complete -C (string join ' ' -- (string escape -- $words[(math $i + 1)..-1]) (commandline -ct))
end
complete -c redlatch -n __redlatch_wrapped -f -a '(__redlatch_complete_wrapped)'
`
