package main

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
)

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
	case "extend", "unlock", "init", "doctor", "demo", "ui", "version":
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
	const none = cobra.ShellCompDirectiveNoFileComp
	switch {
	case len(args) > 0 && cmd.Name() == "run":
		return nil, cobra.ShellCompDirectiveDefault // CMD may be a file
	case len(args) > 0:
		return nil, none
	}
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
