package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// short returns a time with three digits that matter.
func short(d time.Duration) string {
	switch {
	case d == 0:
		return "–"
	case d < time.Millisecond:
		return digits(float64(d)/1e3) + " µs"
	case d < time.Second:
		return digits(float64(d)/1e6) + " ms"
	}
	return digits(d.Seconds()) + " s"
}

// digits returns a number with three digits that matter.
func digits(f float64) string {
	switch {
	case f >= 100:
		return fmt.Sprintf("%.0f", f)
	case f >= 10:
		return fmt.Sprintf("%.1f", f)
	}
	return fmt.Sprintf("%.2f", f)
}

// count returns a number of things, with its thousands apart.
func count(f float64) string {
	if f < 100 && f != math.Trunc(f) {
		return digits(f)
	}
	s := strconv.FormatFloat(f, 'f', 0, 64)
	var b strings.Builder
	for i, d := range s {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// digitsOr is a number, or a dash for nothing.
func digitsOr(f float64) string {
	if f == 0 {
		return "–"
	}
	return digits(f)
}
