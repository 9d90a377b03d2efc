// Package flag has the kinds of flags that pflag lacks: durations that may be a
// bare number of seconds, as for flock, and one of a few words.
package flag

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Duration adds a flag of a duration. short is its letter, or empty.
func Duration(flags *pflag.FlagSet, d *time.Duration, name, short string, preset time.Duration, usage string) {
	*d = preset
	flags.VarP((*duration)(d), name, short, usage)
}

type duration time.Duration

func (v *duration) Type() string { return "duration" }
func (v *duration) String() string {
	if *v == 0 {
		return "" // so that no default is shown
	}
	return time.Duration(*v).String()
}

func (v *duration) Set(text string) error {
	if strings.Trim(text, "+-.0123456789") == "" {
		number, err := strconv.ParseFloat(text, 64)
		if err == nil && math.Abs(number) < math.MaxInt64/float64(time.Second) {
			*v = duration(number * float64(time.Second))
			return nil
		}
	} else if d, err := time.ParseDuration(text); err == nil {
		*v = duration(d)
		return nil
	}
	return errors.New("must be a number of seconds, or a duration such as 30s or 1m")
}

// Limit adds a flag of a duration above 0. It is 0 if the flag is not given.
func Limit(flags *pflag.FlagSet, d *time.Duration, name, usage string) {
	flags.Var(limit{(*duration)(d)}, name, usage)
}

type limit struct{ *duration }

func (l limit) Set(text string) error {
	if err := l.duration.Set(text); err != nil || *l.duration <= 0 {
		return errors.New("must be longer than 0s: a duration such as 500ms, or a number of seconds")
	}
	return nil
}

// Word adds a flag of one of several words, of which the first is the default.
func Word[S ~string](flags *pflag.FlagSet, s *S, name, usage string, words ...S) {
	*s = words[0]
	flags.Var(&word[S]{s, words}, name, usage)
}

type word[S ~string] struct {
	value *S
	words []S
}

func (w *word[S]) String() string { return string(*w.value) }
func (w *word[S]) Type() string   { return w.join(w.words, "|") }
func (w *word[S]) Set(text string) error {
	if !slices.Contains(w.words, S(text)) {
		last := len(w.words) - 1
		return fmt.Errorf("must be %s or %s", w.join(w.words[:last], ", "), w.words[last])
	}
	*w.value = S(text)
	return nil
}

func (w *word[S]) join(words []S, sep string) string {
	var all []string
	for _, s := range words {
		all = append(all, string(s))
	}
	return strings.Join(all, sep)
}
