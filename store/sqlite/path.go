package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// DefaultPath returns the path of the lock file for this user:
// redlatch/locks.db in the state folder. That is $REDLATCH_STATE_DIR if it is
// set, and otherwise the system's: $XDG_STATE_HOME or ~/.local/state on Unix,
// ~/Library/Application Support on macOS, %LocalAppData% on Windows.
func DefaultPath() (string, error) {
	dir, err := stateDir(runtime.GOOS, os.Getenv)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "redlatch", "locks.db"), nil
}

func stateDir(goos string, getenv func(string) string) (string, error) {
	if dir := getenv("REDLATCH_STATE_DIR"); dir != "" {
		return filepath.Abs(dir)
	}
	under := func(variable string, elem ...string) (string, error) {
		dir := getenv(variable)
		if dir == "" {
			return "", fmt.Errorf("redlatch: there is no folder for the lock file: set %s or REDLATCH_STATE_DIR", variable)
		}
		dir = filepath.Join(append([]string{dir}, elem...)...)
		if !filepath.IsAbs(dir) {
			return "", errors.New("redlatch: " + variable + " is not an absolute path: set REDLATCH_STATE_DIR")
		}
		return dir, nil
	}
	switch goos {
	case "windows":
		return under("LocalAppData")
	case "darwin", "ios":
		return under("HOME", "Library", "Application Support")
	}
	// The XDG specification says that relative paths are ignored.
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return dir, nil
	}
	return under("HOME", ".local", "state")
}
