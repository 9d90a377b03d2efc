package sqlite

import "time"

// timekeeper tells the time. The wall clock may be set at any moment, so it
// is asked only about tokens; what expires does so by a clock that cannot be.
type timekeeper struct {
	// wall is the wall clock.
	wall func() time.Time

	// elapsed is the time in nanoseconds since some moment that all
	// processes of this boot agree on.
	elapsed func() int64

	// boot tells this boot of the machine from others. Empty means that
	// nothing does, and that elapsed is of no use.
	boot string
}

// The clocks by which a file may keep its expiries. It is a property of the
// file: two processes that read one row by different clocks would not exclude
// each other.
const (
	byBoot = "boot"
	byWall = "wall"
)

// best returns the best clock that this process can offer.
func (k timekeeper) best() string {
	if k.boot == "" {
		return byWall
	}
	return byBoot
}

// by returns the timekeeper for a file that goes by the given clock.
func (k timekeeper) by(clock string) timekeeper {
	if clock == byWall {
		wall := k.wall
		k.boot, k.elapsed = "", func() int64 { return wall().UnixNano() }
	}
	return k
}
