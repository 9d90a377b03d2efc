package sim

import "time"

// dice is repeatable randomness: a number for every place that asks for one,
// independent of what was asked before.
type dice uint64

func (d dice) roll(parts ...uint64) uint64 {
	h := uint64(d)
	for _, p := range parts {
		h = mix(h ^ p)
	}
	return mix(h)
}

// mix is the finalizer of SplitMix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// below returns a duration from 0 up to d, out of a number.
func below(number uint64, d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(number % uint64(d))
}

// stream is a sequence of numbers, for making plans.
type stream struct {
	dice dice
	n    uint64
}

func (s *stream) next() uint64 { s.n++; return s.dice.roll(s.n) }

func (s *stream) intn(n int) int { return int(s.next() % uint64(n)) }

func (s *stream) between(least, most time.Duration) time.Duration {
	return least + below(s.next(), most-least)
}

// one reports true once in n calls on average.
func (s *stream) one(n int) bool { return s.intn(n) == 0 }
