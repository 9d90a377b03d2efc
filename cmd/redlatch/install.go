package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

func newInstall() *cobra.Command {
	return &cobra.Command{
		Use:   "install FILE",
		Short: "Copy this program to a file",
		Long: `Copy this program to FILE, or into FILE if that is a folder. A file that is
there is replaced as a whole, also while it runs.

It is for the init container of a pod: the image of redlatch has this program,
and neither a shell nor cp, and the container of the job gets it through a
volume that both mount.

Exit status:
    0  FILE is a copy, which everybody may run
   64  the command line is wrong
   73  FILE cannot be written`,
		Example: `  # the command of an init container
  /usr/bin/redlatch install /tools/redlatch`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return usageError(fmt.Errorf("install takes one file, and %d are given", len(args)), "try redlatch install /tools/redlatch")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if err := install(args[0]); err != nil {
				return &outcome{code: exitCannotCreate, event: "install", err: fmt.Errorf("%s cannot be written: %w", args[0], plainPath(err))}
			}
			return nil
		},
	}
}

// install copies this program to a file, or into a folder.
func install(path string) (err error) {
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
	// A program that runs cannot be written to. It can be replaced.
	to, err := os.CreateTemp(filepath.Dir(path), ".redlatch-install-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			to.Close()
			os.Remove(to.Name())
		}
	}()
	if _, err = io.Copy(to, from); err != nil {
		return err
	}
	if err = errors.Join(to.Chmod(0o755), to.Close()); err != nil {
		return err
	}
	return os.Rename(to.Name(), path)
}

// plainPath is an error without the temporary file that it may name.
func plainPath(err error) error {
	var path *os.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}
