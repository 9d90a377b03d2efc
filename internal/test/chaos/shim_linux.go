package chaos

import (
	"errors"
	"os"

	"github.com/redlatch/redlatch/internal/test/clockshim"
)

// buildShim builds the library that moves the servers' clocks.
func buildShim(dir string) (library string, err error) {
	if err := os.Chmod(dir, 0o755); err != nil { // a server may run as another user
		return "", err
	}
	return clockshim.Build(dir)
}

func newClock(path string) (nodeClock, error) {
	clock, err := clockshim.New(path)
	return clock, errors.Join(err, os.Chmod(path, 0o644))
}
