package main

import (
	"errors"

	"github.com/spf13/cobra"
)

func isTortureClient([]string) bool { return false }
func runTortureClient() int         { return exitUsage }

// newTorture says that there is no torture here: it stops and continues
// processes, which Windows cannot.
func newTorture(*reporter) *cobra.Command {
	return &cobra.Command{
		Use:     "torture",
		Short:   "Break a quorum of real servers on purpose (not on Windows)",
		Long:    "Break a quorum of real servers on purpose, and see whether the locks hold. It needs\na system on which processes can be stopped and continued.",
		Example: "  redlatch torture",
		RunE: func(*cobra.Command, []string) error {
			return &outcome{code: exitNoQuorum, event: "no_server", err: errors.New("torture does not run on Windows: it stops and continues processes"), hint: "run it on Linux, in WSL or in a container"}
		},
	}
}
