package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/node"
)

const (
	// samplePace is the time between two round trips: what makes some of them
	// slow often lasts for a moment, which must not decide.
	samplePace = 25 * time.Millisecond
	// sampleLimit limits the measuring of one node.
	sampleLimit = 8 * time.Second
	// sampleBlock is how many round trips are judged by their slowest.
	sampleBlock = 10
)

// measure measures round trips and the node's clock.
func (a *Admin) measure(ctx context.Context, m *runner.Member, n *NodeCheckup, key string, how ExamineOptions) error {
	var times []time.Duration
	began := time.Now()
	for i := range how.Samples {
		if i > 0 && time.Since(began) > sampleLimit {
			break
		}
		trip, ahead, err := a.ping(ctx, m, key)
		if err != nil {
			return err
		}
		times = append(times, trip)
		// The node read its clock during the round trip, so the shortest round
		// trip gives the smallest error.
		if half := trip / 2; i == 0 || half < n.ClockError {
			n.Clock, n.ClockError = ahead, half
		}
		if how.Progress != nil {
			how.Progress()
		}
		if i+1 < how.Samples && trip < samplePace {
			select {
			case <-time.After(samplePace - trip):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	n.Slow = slow(times)
	slices.Sort(times)
	n.Median, n.P99 = times[len(times)/2], times[(len(times)*99-1)/100]
	return nil
}

// ping returns how long a node takes to answer one request, and how far its
// clock is ahead of ours, plus or minus half of that.
func (a *Admin) ping(ctx context.Context, m *runner.Member, key string) (trip, ahead time.Duration, err error) {
	sent, start := a.c.Clock().Now(), time.Now()
	reply, err := m.Node().Do(ctx, node.Request{Op: node.OpInspect, Name: key})
	now := reply.Now
	var right interface{ Forbidden() bool }
	if named, ok := m.Node().(node.Identifier); ok && errors.As(err, &right) && right.Forbidden() {
		// It answers, but not for this name. The node's own examination says
		// which permission is missing.
		sent, start = a.c.Clock().Now(), time.Now()
		_, now, err = named.Identity(ctx)
	}
	trip = time.Since(start)
	if !now.IsZero() {
		ahead = now.Sub(sent.Add(trip / 2))
	}
	return trip, ahead, err
}

// slow returns the upper quartile of the slowest of each sampleBlock times in a
// row.
func slow(times []time.Duration) time.Duration {
	var slowest []time.Duration
	for block := range slices.Chunk(times, sampleBlock) {
		slowest = append(slowest, slices.Max(block))
	}
	slices.Sort(slowest)
	return slowest[(len(slowest)*3-1)/4]
}

// recommend finds times that fit the measurements: a node time limit of ten
// slow round trips, and a TTL in which about ten such limits fit between the
// first try of an extension, after a third of the TTL, and the deadline.
func (a *Admin) recommend(up *Checkup, add func(node.Finding)) {
	var slowest time.Duration
	for _, n := range up.Nodes {
		if n.Err == nil {
			slowest = max(slowest, n.Slow)
		}
	}
	if slowest == 0 {
		return
	}
	const least = 50 * time.Millisecond
	up.NodeTimeout = max(least, roundUp(10*slowest))
	up.TTL = max(2*time.Second, roundUp(40*up.NodeTimeout))
	for _, m := range a.c.Members() {
		if slow, ok := m.Node().(node.Slow); ok {
			up.NodeTimeout = max(up.NodeTimeout, slow.TimeLimit())
			up.TTL = max(up.TTL, 2*slow.TimeLimit())
		}
	}
	f := node.Finding{Check: "times", Found: fmt.Sprintf("slow round trips take %v: suggested are a TTL of %v and a node time limit of %v", slowest.Round(10*time.Microsecond), up.TTL, up.NodeTimeout)}
	if most := a.c.Parameters().MaxTTL; up.TTL > most {
		f.Severity, f.Means = node.Warning, fmt.Sprintf("the nodes allow a TTL of %v at the most: locks may be lost to slow answers", most)
		f.Do = "bring client and nodes closer together, or allow longer locks: redlatch init --max-ttl"
	}
	add(f)
}

// roundUp rounds up to one leading digit.
func roundUp(d time.Duration) time.Duration {
	unit := time.Millisecond
	for d >= 10*unit {
		unit *= 10
	}
	return (d + unit - 1) / unit * unit
}
