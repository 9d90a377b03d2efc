//go:build unix && !linux

package chaos

import "errors"

func buildShim(string) (string, error) {
	return "", errors.New("servers' clocks can be moved on Linux alone")
}

func newClock(string) (nodeClock, error) {
	return nil, errors.New("servers' clocks can be moved on Linux alone")
}
