package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// isSlip reports whether a word that is so many edits away from another can be
// a misspelling of it.
func isSlip(word string, edits int) bool { return edits <= max(1, len(word)/3) }

// unknownCommand rejects an argument of the root command: there is no such
// command.
func unknownCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, cmd := range root.Commands() {
		if cmd.IsAvailableCommand() {
			names = append(names, cmd.Name())
		}
	}
	hint := "try redlatch --help"
	if near, edits := nearest(args[0], names); isSlip(args[0], edits) {
		hint = "did you mean redlatch " + near + "?"
	}
	return usageError(fmt.Errorf("unknown command %q", args[0]), hint)
}

// meantFlag is what to do about an error of a command's flags: it names the flag
// that was meant, if one is known.
func meantFlag(cmd *cobra.Command, err error) string {
	hint := "try " + cmd.CommandPath() + " --help"
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return hint
	}
	word := cmp.Or(unknown.GetSpecifiedShortnames(), unknown.GetSpecifiedName()) // one dash too few, perhaps
	word, _, _ = strings.Cut(word, "=")
	if slices.Contains([]string{"o", "output", "format"}, word) && cmd.Flags().Lookup("json") != nil {
		return "give --json, for output that programs read"
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near, edits := nearest(word, names); len(word) > 1 && isSlip(word, edits) {
		return "did you mean --" + near + "?"
	}
	return hint
}

// wrongValue returns an error about the value of a flag in the form of all others:
// the flag, the value, and what is allowed.
func wrongValue(err error) error {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return err
	}
	bound := bad.Unwrap().Error()
	switch bad.GetFlag().Value.Type() {
	case "bool":
		bound = "must be true or false"
	case "int":
		bound = "must be a whole number"
	}
	return fmt.Errorf("--%s is %q: %s", bad.GetFlag().Name, bad.GetValue(), bound)
}

// noArgs refuses arguments. The hint says which flag they were meant for.
func noArgs(hint string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		if err := strayAddress(args); err != nil {
			return err
		}
		return usageError(fmt.Errorf("%s takes no argument, and %q is one", cmd.Name(), args[0]), hint)
	}
}

// oneArg accepts one argument, such as a file.
func oneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 || args[0] == "" {
			return usageError(fmt.Errorf("%s takes one %s, and %d are given", cmd.Name(), what, len(args)), "try "+cmd.CommandPath()+" --help")
		}
		return nil
	}
}

// mostOneArg takes one argument, or none.
func mostOneArg(what, hint string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return usageError(fmt.Errorf("there are %d arguments: %s takes one %s", len(args), cmd.Name(), what), hint)
		}
		return nil
	}
}

// nameArgs accepts the name of one lock.
func nameArgs(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return usageError(errors.New("the name of the lock is missing"), "try "+cmd.CommandPath()+" NAME")
	case len(args) > 1:
		if err := strayAddress(args); err != nil {
			return err
		}
		return usageError(fmt.Errorf("there are %d names: %s takes one lock", len(args), cmd.Name()), "quote a name with spaces in it")
	}
	return nil
}
