package report

import (
	"fmt"
	"math"
	"time"
)

// Short returns a time with three digits that matter.
func Short(d time.Duration) string {
	switch {
	case d <= 0:
		return "–"
	case d < time.Millisecond:
		return Digits(float64(d)/1e3) + " µs"
	case d < time.Second:
		return Digits(float64(d)/1e6) + " ms"
	}
	return Digits(d.Seconds()) + " s"
}

// Digits returns a number with three digits that matter, or a dash for nothing.
func Digits(f float64) string {
	switch {
	case f == 0:
		return "–"
	case f >= 100:
		return fmt.Sprintf("%.0f", f)
	case f >= 10:
		return fmt.Sprintf("%.1f", f)
	}
	return fmt.Sprintf("%.2f", f)
}

// Count returns a number of things.
func Count(f float64) string {
	if f < 100 && f != math.Trunc(f) {
		return Digits(f)
	}
	return fmt.Sprintf("%.0f", f)
}
