//go:build !linux

package sqlite

import "time"

// systemTime has only the wall clock to go by.
func systemTime() timekeeper { return timekeeper{wall: time.Now} }
