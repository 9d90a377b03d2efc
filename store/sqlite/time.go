package sqlite

import "time"

// timekeeper reads the clocks. The wall clock may be set at any moment, so it
// is used for tokens only; expiry uses a clock that cannot be set.
type timekeeper struct {
	// wall is the wall clock.
	wall func() time.Time

	// elapsed is the time in nanoseconds since some moment that all
	// processes of this boot agree on.
	elapsed func() int64

	// boot identifies this boot of the machine. If it is empty, boots cannot be
	// distinguished, and elapsed is not used.
	boot string
}

// The clocks by which the locks of a file can expire. The clock is a property
// of the file: two processes that read one row by different clocks would not
// exclude each other.
const (
	byBoot = "boot"
	byWall = "wall"
)

// best returns the best clock that this process has.
func (k timekeeper) best() string {
	if k.boot == "" {
		return byWall
	}
	return byBoot
}

// by returns the timekeeper for a file that uses the given clock.
func (k timekeeper) by(clock string) timekeeper {
	if clock == byWall {
		k.boot = ""
	}
	return k
}
