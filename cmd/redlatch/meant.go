package main

import (
	"errors"
	"fmt"
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
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		word := unknown.GetSpecifiedName()
		if letters := unknown.GetSpecifiedShortnames(); letters != "" {
			word = letters // one dash too few, perhaps
		}
		if len(word) > 1 {
			if hint := hintFlag(cmd, strings.SplitN(word, "=", 2)[0]); hint != "" {
				return hint
			}
		}
	}
	return "try " + cmd.CommandPath() + " --help"
}

func hintFlag(cmd *cobra.Command, word string) string {
	if now := renamed[word]; cmd.Flags().Lookup(now) != nil {
		return fmt.Sprintf("it is --%s now: see %s --help", now, cmd.CommandPath())
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near, edits := nearest(word, names); isSlip(word, edits) {
		return "did you mean --" + near + "?"
	}
	return ""
}
