// Package seconds reads durations from flags: a duration such as 30s or 1m, or a
// bare number of seconds, as for flock.
package seconds

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Var adds a flag of a duration. short is its letter, or empty.
func Var(flags *pflag.FlagSet, d *time.Duration, name, short string, preset time.Duration, usage string) {
	*d = preset
	flags.VarP((*value)(d), name, short, usage)
}

// value is a pflag.Value.
type value time.Duration

func (v *value) String() string {
	if v == nil || *v == 0 {
		return "" // so that no default is shown
	}
	return time.Duration(*v).String()
}

func (v *value) Type() string { return "duration" }

func (v *value) Set(text string) error {
	d, err := Parse(text)
	if err == nil {
		*v = value(d)
	}
	return err
}

// Parse returns the duration of a text.
func Parse(text string) (time.Duration, error) {
	if strings.Trim(text, "+-.0123456789") == "" {
		number, err := strconv.ParseFloat(text, 64)
		if err == nil && math.Abs(number) < math.MaxInt64/float64(time.Second) {
			return time.Duration(number * float64(time.Second)), nil
		}
	} else if d, err := time.ParseDuration(text); err == nil {
		return d, nil
	}
	return 0, errors.New("must be a number of seconds, or a duration such as 30s or 1m")
}
