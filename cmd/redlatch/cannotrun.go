package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// cannotRun is the outcome of a command that cannot be run. started says that
// the program was found, and that starting it failed.
func cannotRun(command string, err error, started bool) *outcome {
	var inner *exec.Error
	if errors.As(err, &inner) {
		err = inner.Err
	}
	var path *os.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	end := &outcome{code: exitCannotRun, event: "cannot_run", err: fmt.Errorf("cannot run %q: %w", command, err)}
	isPath := strings.ContainsRune(command, filepath.Separator)
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		end.code, end.event = exitNotFound, "not_found"
		switch {
		case strings.ContainsAny(command, " \t"):
			end.hint = fmt.Sprintf("try sh -c %q, if this is a line for the shell", command)
		case !isPath:
			end.hint = "install it, or give its path"
		case started:
			end.hint = "look at its first line: the interpreter that it names is not there"
		default:
			end.hint = "check the path"
		}
	case errors.Is(err, exec.ErrDot):
		end.code, end.event = exitNotFound, "not_found"
		end.hint = "try ./" + command
	case errors.Is(err, syscall.EISDIR):
		end.hint = "give a program in it"
	case errors.Is(err, os.ErrPermission):
		end.hint = "try chmod +x, if it is meant to be run"
	case errors.Is(err, syscall.ENOEXEC):
		end.hint = "give it a first line of #!/bin/sh, if it is a script"
	}
	return end
}
