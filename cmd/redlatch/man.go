//go:build man

package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func init() { packagersVerbs = append(packagersVerbs, newMan) }

// newMan writes the manual pages. It is for packagers: users need not link what
// formats them.
func newMan() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages into a folder",
		Long: `Write a manual page for every command into the folder DIR, which is made if it is
not there. SOURCE_DATE_EPOCH sets their date.`,
		Example: "  redlatch man build/man && man -l build/man/redlatch-run.1",
		Hidden:  true,
		Args:    oneArg("folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cmd.Root().DisableAutoGenTag = true
			err := os.MkdirAll(args[0], 0o755)
			if err == nil {
				err = doc.GenManTree(cmd.Root(), &doc.GenManHeader{Source: "redlatch", Manual: "redlatch"}, args[0])
			}
			if err != nil {
				return &outcome{code: exitOutput, event: "output", err: fmt.Errorf("the manual cannot be written: %w", err)}
			}
			return nil
		},
	}
}
