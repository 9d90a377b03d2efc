package chaos

import "github.com/redlatch/redlatch/internal/test/clockshim"

// buildShim builds the library that moves the servers' clocks.
func buildShim(dir string) (library string, err error) { return clockshim.Build(dir) }

func newClock(path string) (nodeClock, error) { return clockshim.New(path) }
