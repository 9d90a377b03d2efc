package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/textfile"
)

func newInstall(*reporter) *cobra.Command {
	return &cobra.Command{
		Use:   "install FILE",
		Short: "Copy this program to a file",
		Long: `Copy this program to FILE, or into FILE if that is a folder: for the init container
of a pod, since the image of redlatch has no cp.`,
		Example: `  /usr/bin/redlatch install /tools/redlatch`,
		Args:    oneArg("file"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := install(args[0]); err != nil {
				return &outcome{code: exitCannotCreate, event: "install", err: fmt.Errorf("%s cannot be written: %w", args[0], err)}
			}
			return nil
		},
	}
}

// install copies this program to a file, or into a folder.
func install(path string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	from, err := os.Open(self)
	if err != nil {
		return err
	}
	defer from.Close()
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "redlatch")
	}
	return textfile.Replace(path, 0o755, from)
}
