package sim

import "time"

// FaultKind says what breaks.
type FaultKind string

// What can break.
const (
	CrashKeep  FaultKind = "crash, data kept"
	CrashEmpty FaultKind = "crash, data lost"
	CrashStale FaultKind = "crash, old data"
	Flush      FaultKind = "flush"
	Freeze     FaultKind = "freeze"
	Cut        FaultKind = "connections cut"
	Partition  FaultKind = "partition"
	Isolation  FaultKind = "client reaches one node alone"
	Deafness   FaultKind = "replies lost"
	Pause      FaultKind = "client paused"
	Death      FaultKind = "client dies"
	Wall       FaultKind = "client clock set"
	Back       FaultKind = "node clock set back"
	Forward    FaultKind = "node clock set forward"
	Evict      FaultKind = "keys evicted"
)

// Fault is one fault.
type Fault struct {
	Kind   FaultKind
	At     time.Duration
	For    time.Duration
	Node   int
	Client int
	By     time.Duration // how far a clock is set, how old the data is
}

func (p *Plan) faults(s *stream) {
	kinds := []FaultKind{Freeze, Isolation, Cut, Cut, Partition, Deafness, Pause, Pause, Wall, CrashKeep}
	if p.Clients > 2 && s.one(3) {
		kinds = append(kinds, Death)
	}
	switch {
	case p.Climate == BeyondSteps:
		kinds = append(kinds, Forward, Forward, Forward)
	case p.Climate == BeyondMemory:
		p.Guard = p.Guard && s.one(2)
		kinds = append(kinds, Evict, Evict, Evict)
		if !p.Guard {
			kinds = append(kinds, Flush, CrashEmpty, CrashStale)
		}
	case p.Climate == Within && p.Guard:
		kinds = append(kinds, CrashEmpty, CrashEmpty, CrashStale, CrashStale, Flush, Back)
	case p.Climate == Within:
		kinds = append(kinds, Back)
	}
	switch p.Flavour {
	case Crowd:
		kinds = []FaultKind{Cut, Pause}
	case Keeper:
		kinds = []FaultKind{Cut, Partition, Partition, Deafness, Freeze, CrashKeep, Isolation, Isolation}
		if p.Guard {
			kinds = append(kinds, CrashEmpty, Flush)
		}
	}
	dead := false
	for range 1 + s.intn(9) {
		f := Fault{
			Kind: kinds[s.intn(len(kinds))], At: s.between(0, p.Mend-time.Second), For: s.between(0, 500*time.Millisecond),
			Node: s.intn(p.Nodes), Client: s.intn(p.Clients),
		}
		switch f.Kind {
		case Death:
			if dead {
				continue
			}
			dead = true
		case CrashStale:
			f.By = s.between(0, 2*p.TTL)
		case Pause, Isolation:
			f.For = s.between(0, min(p.TTL, time.Second)*2)
		case Wall:
			by := s.between(0, p.apart()*4/5)
			if s.one(2) {
				by = s.between(time.Minute, time.Hour)
			}
			f.By = []time.Duration{-1, 1}[s.intn(2)] * by
		case Back:
			f.By = -s.between(0, p.apart()/2)
		case Forward:
			f.By = s.between(0, p.TTL)
		}
		p.Faults = append(p.Faults, f)
	}
}
