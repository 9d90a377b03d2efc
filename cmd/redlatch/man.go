package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/cmd/internal/manual"
)

// newMan writes the manual pages. It is for packagers, and so is hidden.
func newMan() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the manual pages into a folder",
		Long:    "Write a manual page for every command into the folder DIR, which is made if it is not there.",
		Example: "  redlatch man build/man && man -l build/man/redlatch-run.1",
		Hidden:  true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError(fmt.Errorf("man takes one folder, and %d are given", len(args)), "try redlatch man build/man")
			}
			return nil
		},
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
