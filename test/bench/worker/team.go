package worker

import (
	"context"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/redlatch/redlatch/test/bench/clock"
	"github.com/redlatch/redlatch/test/bench/process"
)

// Team is a number of processes that follow the same orders.
type Team struct {
	members []*process.Process // nil for those that did not start
}

// startingAtOnce is how many processes start and connect at the same time. A
// crowd that did so together would exceed the contenders' time limits, try
// again, and keep itself from getting ready.
const startingAtOnce = 8

// Start starts a process for each config and waits until all are ready. They end
// with ctx.
func Start(ctx context.Context, configs []Config) (*Team, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	t := &Team{members: make([]*process.Process, len(configs))}
	var g errgroup.Group
	g.SetLimit(startingAtOnce)
	for i := range configs {
		g.Go(func() (err error) {
			var ready Answer
			t.members[i], err = process.Start(exec.CommandContext(ctx, self, Argument), configs[i], &ready)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Stop()
		return nil, err
	}
	return t, nil
}

// afterEnd is how long a process may take to end an order: a contender finishes
// its call, and that can be one that waits for a frozen server.
const afterEnd = 40 * time.Second

// Begin gives an order to all.
func (t *Team) Begin(o Order) error {
	for _, m := range t.members {
		if err := m.Encode(o); err != nil {
			return m.Explain(err)
		}
	}
	return nil
}

// Finish waits until all are done with an order. It returns what they did.
func (t *Team) Finish(o Order) (done Answer, err error) {
	defer time.AfterFunc(clock.Until(o.End)+afterEnd, func() { t.each((*process.Process).Kill) }).Stop()
	// One after the other: what they write is kept until it is read, or they wait.
	for _, m := range t.members {
		var a Answer
		if err := m.Decode(&a); err != nil {
			return done, m.Explain(err)
		}
		done.add(a)
	}
	return done, nil
}

// CPU returns what the processes used since they started.
func (t *Team) CPU() (sum time.Duration) {
	t.each(func(m *process.Process) { sum += m.CPU() })
	return sum
}

// Stop ends the processes and waits until they have ended.
func (t *Team) Stop() {
	t.each((*process.Process).Kill)
	t.each((*process.Process).Stop)
}

func (t *Team) each(do func(*process.Process)) {
	for _, m := range t.members {
		if m != nil {
			do(m)
		}
	}
}
