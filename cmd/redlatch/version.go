package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/cmd/internal/release"
)

func newVersion(say *reporter) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long: `Print the version of redlatch, the commit it was built from and that commit's
date, the Go release it was built with, and the platform. What is not known is left
out: a build from a tree without its history has no commit.`,
		Example: "  redlatch version\n  redlatch version --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON || say.format == "json" {
				return unwritten(writeJSON(cmd.OutOrStdout(), release.Current()))
			}
			return writeVersion(cmd)
		},
	}
	say.registerOutput(cmd.Flags(), "write it in words, or as a line of JSON", "text", "json")
	cmd.Flags().BoolVar(&asJSON, "json", false, "the same as -o json")
	return cmd
}

func writeVersion(cmd *cobra.Command) error {
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "redlatch %s\n", release.Current())
	return unwritten(err)
}
