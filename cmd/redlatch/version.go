package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/cmd/internal/release"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    "Print the version of redlatch, the Go release it was built with, and the platform.",
		Example: "  redlatch version",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return writeVersion(cmd) },
	}
}

func writeVersion(cmd *cobra.Command) error {
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "redlatch %s %s %s/%s\n", release.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return unwritten(err)
}
