//go:build race

package redsync_test

// raceEnabled says that the race detector is on.
const raceEnabled = true
