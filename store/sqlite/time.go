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
