package model

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/redlatch/redlatch/internal/progress"
)

// Walk takes steps at random, for as long as there are any and no longer than
// depth, and does so walks times. It returns the first walk that leads to
// something wrong, and how many steps it took in all.
func (m *Model) Walk(ctx context.Context, seed uint64, walks, depth int) (trace []Step, steps int) {
	random := rand.New(rand.NewPCG(seed, 0))
	begin := m.System().Init
	for range walks {
		progress.Tell(ctx)
		if ctx.Err() != nil {
			return nil, steps
		}
		s, way, weight := begin, []Step(nil), weights(random)
		for range depth {
			var to State
			var by Step
			total := 0.0
			m.Next(&s, func(step Step, t *State) {
				w := weight[step.Kind]
				if total += w; random.Float64()*total < w {
					to, by = *t, step
				}
			})
			if total == 0 {
				break
			}
			steps++
			s, way = to, append(way, by)
			if s.Bad != Fine {
				return append(append([]Step(nil), m.b.Start...), way...), steps
			}
		}
	}
	return nil, steps
}

// weights says how likely each kind of step is in one walk. Requests are mostly
// carried out and faults are rare, or else nobody ever gets the lock; beyond
// that every walk has likings of its own.
func weights(random *rand.Rand) (weight [kinds]float64) {
	for k := range weight {
		weight[k] = math.Exp(2 * random.NormFloat64())
		switch Kind(k) {
		case Carry:
			weight[k] = 10
		case Extend, Arrive:
			weight[k] *= 2
		case Tick:
			weight[k] *= 4
		case End:
			weight[k] /= 10
		case Empty, OldData, Flush, Twice:
			weight[k] /= 30
		}
	}
	return weight
}

// Wide is the instance for walks: more of everything than can be searched to
// its end.
func Wide() Bounds {
	return Bounds{
		Clients: 3, Nodes: 5, TTL: 4, Drift: 1, Window: 2,
		Tries: [MaxClients]int{3, 3, 3}, Extensions: [MaxClients]int{3, 3, 3}, Repairs: true, Created: true,
		Proposals: []int8{-2*unit - 1, -2 * unit, 0, 2 * unit, 2*unit + 1}, Raise: true,
		Duplicates: 2, LateReply: true, EmptyStart: 2, StaleStart: 2, Flushes: 1,
	}
}
