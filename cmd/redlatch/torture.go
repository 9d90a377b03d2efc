package main

import (
	"errors"

	"github.com/spf13/cobra"
)

// newTorture says where torture is. It is a command of its own, so that the
// machinery that breaks servers is not part of this one.
func newTorture() *cobra.Command {
	return &cobra.Command{
		Use:                "torture",
		Short:              "Is the command redlatch-torture",
		Long:               "Torture is a command of its own, redlatch-torture:\n\n  " + installTorture,
		Example:            "  " + installTorture + "\n  redlatch-torture --help",
		Hidden:             true,
		DisableFlagParsing: true, // the flags are those of the other command
		Args: func(*cobra.Command, []string) error {
			return usageError(errors.New("torture is a command of its own, redlatch-torture"), "get it with "+installTorture)
		},
		Run: func(*cobra.Command, []string) {},
	}
}

const installTorture = "go install github.com/redlatch/redlatch/cmd/redlatch-torture@latest"
