package main

import (
	"errors"

	"github.com/spf13/cobra"
)

func isClient([]string) bool { return false }
func runClient() int         { return exitUsage }

// newRoot says that torture does not run here: it stops and continues processes,
// which Windows cannot do.
func newRoot() (*cobra.Command, *string) {
	format := "text"
	cmd := &cobra.Command{
		Use:     "redlatch-torture",
		Short:   "Break a quorum of real servers on purpose (not on Windows)",
		Long:    "Break a quorum of real servers on purpose, and check whether the locks hold. It needs\na system on which processes can be stopped and continued.",
		Example: "  redlatch-torture",
		RunE: func(*cobra.Command, []string) error {
			return &failure{exitFailed, "no_server", errors.New("torture does not run on Windows: it stops and continues processes; run it on Linux, in WSL or in a container")}
		},
	}
	finish(cmd)
	return cmd, &format
}
