//go:build !linux

package sqlite

import "time"

// systemTime has the wall clock only.
func systemTime() timekeeper { return timekeeper{wall: time.Now} }
