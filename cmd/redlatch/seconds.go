package main

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// seconds is a pflag.Value: a duration, or a bare number of seconds, as for
// flock.
type seconds struct{ d *time.Duration }

func (s seconds) String() string {
	if s.d == nil {
		return "0s"
	}
	return s.d.String()
}
func (s seconds) Type() string { return "duration" }
func (s seconds) Set(text string) error {
	if strings.Trim(text, "+-.0123456789") == "" {
		number, err := strconv.ParseFloat(text, 64)
		if err == nil && math.Abs(number) < math.MaxInt64/float64(time.Second) {
			*s.d = time.Duration(number * float64(time.Second))
			return nil
		}
	} else if d, err := time.ParseDuration(text); err == nil {
		*s.d = d
		return nil
	}
	return errors.New("must be a number of seconds, or a duration such as 30s or 1m")
}
