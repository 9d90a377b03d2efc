package family

import (
	"context"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/bench/clock"
	"github.com/redlatch/redlatch/bench/server"
	"github.com/redlatch/redlatch/bench/system"
)

// Times say how long is measured.
type Times struct {
	// Warm is how long contenders contend once before anything counts, WarmJava
	// the same for Java, which compiles its code as it runs it. Settle is the
	// beginning of each round that does not count, Round what counts.
	Warm, WarmJava, Settle, Round time.Duration
	Rounds                        int
	// Crossings is how often the crossing arrivals are tried.
	Crossings int
}

// Full are the times of the results in the documentation, Quick those of a
// look.
var (
	Full  = Times{Warm: 5 * time.Second, WarmJava: 30 * time.Second, Settle: 500 * time.Millisecond, Round: 2 * time.Second, Rounds: 8, Crossings: 10}
	Quick = Times{Warm: 500 * time.Millisecond, WarmJava: 500 * time.Millisecond, Settle: 200 * time.Millisecond, Round: time.Second, Rounds: 1, Crossings: 2}
)

const (
	// lead is how long after their order contenders begin.
	lead = 200 * time.Millisecond
	// tail is how long before the end the servers' counters are read.
	tail = 50 * time.Millisecond
)

// Row is what was measured of a peer.
type Row struct {
	Peer
	Version string
	Summary
	// Failed says why there is no result.
	Failed string
}

// entrant is a row that is being measured, on servers of its own: what they
// count is then its alone.
type entrant struct {
	row    *Row
	redis  *server.Redis
	team   *team
	rounds []Round
}

// Measure measures peers of one situation side by side: all of them start, and
// then take turns in every round, so that they meet the same disturbances.
// Those that wait for their turn do nothing but keep their connections.
func Measure(ctx context.Context, peers []Peer, module string, times Times, step func(string)) []Row {
	rows := make([]Row, len(peers))
	entrants := make([]*entrant, len(peers))
	for i, p := range peers {
		rows[i].Peer = p
		step("start " + p.ID())
		entrants[i] = &entrant{row: &rows[i]}
		defer entrants[i].stop()
		entrants[i].fail(entrants[i].start(ctx, module))
	}
	for n := range times.Rounds + 1 {
		for _, e := range entrants {
			if e.row.Failed != "" || ctx.Err() != nil {
				continue
			}
			settle, length := times.Settle, times.Round
			if n == 0 {
				if settle, length = 0, times.Warm; e.row.Runtime == "java" {
					length = times.WarmJava
				}
			}
			step(fmt.Sprintf("round %d of %s", n, e.row.ID()))
			round, err := e.round(ctx, fmt.Sprintf("bench/%d", n), settle, length)
			if e.fail(err); err == nil && n > 0 {
				e.rounds = append(e.rounds, round)
			}
		}
	}
	for _, e := range entrants {
		if e.fail(ctx.Err()); e.row.Failed == "" {
			e.row.Summary = Sum(e.rounds)
		}
	}
	return rows
}

func (e *entrant) fail(err error) {
	if err != nil && e.row.Failed == "" {
		e.row.Failed = err.Error()
	}
}

func (e *entrant) start(ctx context.Context, module string) error {
	var err error
	if e.redis, err = server.StartRedis(ctx, e.row.Nodes); err != nil {
		return err
	}
	if e.row.Ours {
		if err := system.Prepare(ctx, e.redis.Addresses(), false); err != nil {
			return err
		}
	}
	if e.team, err = startTeam(ctx, e.row.Peer, module, e.row.configs(e.redis.Addresses())); err != nil {
		return err
	}
	e.row.Version = e.team.version
	return nil
}

func (e *entrant) stop() {
	if e.team != nil {
		e.team.stop()
	}
	if e.redis != nil {
		e.redis.Stop()
	}
}

// round has the contenders contend, and counts what they do after settle.
func (e *entrant) round(ctx context.Context, name string, settle, length time.Duration) (Round, error) {
	start := clock.Now() + int64(lead)
	o := Order{Name: name, Start: start, End: start + int64(settle+length+tail)}
	if err := e.team.begin(o); err != nil {
		return Round{}, err
	}
	before, cpuBefore, err := e.sampleAt(ctx, start+int64(settle))
	if err != nil {
		return Round{}, err
	}
	after, cpuAfter, err := e.sampleAt(ctx, o.End-int64(tail))
	if err != nil {
		return Round{}, err
	}
	history, done, err := e.team.finish(o)
	if err != nil {
		return Round{}, err
	}
	counted := after.Sub(before)
	return Round{
		History: history.Between(counted.Begun, counted.At), Contenders: contenders,
		Length: time.Duration(counted.At - counted.Begun),
		Sent:   e.row.sent(counted.Commands), ClientCPU: cpuAfter - cpuBefore, ServerCPU: counted.CPU,
		Errors: done.Errors, Error: done.Error,
	}, nil
}

// sampleAt reads the counters at a moment.
func (e *entrant) sampleAt(ctx context.Context, moment int64) (server.Sample, time.Duration, error) {
	select {
	case <-ctx.Done():
		return server.Sample{}, 0, ctx.Err()
	case <-time.After(clock.Until(moment)):
	}
	s, err := e.redis.Sample()
	return s, e.team.cpu(), err
}
