package worker

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/bench/clock"
	"github.com/redlatch/redlatch/bench/stats"
)

// Team is a number of workers that begin together.
type Team struct {
	members []*member
}

type member struct {
	config Config
	cmd    *exec.Cmd
	in     io.WriteCloser
	orders *gob.Encoder
	answer *gob.Decoder
	stderr bytes.Buffer
}

// startingAtOnce is how many workers start and connect at the same time. A
// crowd that did so together would run into the contenders' time limits, try
// again, and keep itself from getting ready.
const startingAtOnce = 8

// Start starts a worker for each config and waits until all are ready. The
// workers end with ctx.
func Start(ctx context.Context, configs []Config) (*Team, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	t := &Team{}
	for _, c := range configs {
		t.members = append(t.members, &member{config: c, cmd: exec.CommandContext(ctx, program, Argument)})
	}
	places := make(chan struct{}, startingAtOnce)
	var failed atomic.Bool // then the others need not start
	err = t.each(func(m *member) error {
		places <- struct{}{}
		defer func() { <-places }()
		if failed.Load() || ctx.Err() != nil {
			return ctx.Err()
		}
		err := m.start()
		if err != nil {
			failed.Store(true)
		}
		return err
	})
	if err != nil {
		t.Stop()
		return nil, err
	}
	return t, nil
}

// start starts a worker and waits until it is ready.
func (m *member) start() error {
	m.cmd.Stderr = &m.stderr
	in, err := m.cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := m.cmd.Start(); err != nil {
		return err
	}
	m.in, m.orders, m.answer = in, gob.NewEncoder(in), gob.NewDecoder(out)
	var ready bool
	return errors.Join(m.orders.Encode(m.config), m.answer.Decode(&ready))
}

// Begin gives all the same order.
func (t *Team) Begin(o Order) error {
	return t.each(func(m *member) error { return m.orders.Encode(o) })
}

// afterEnd is how long a worker may take to end: a contender finishes its
// call, and that can be one that waits for a frozen server.
const afterEnd = 40 * time.Second

// Finish waits for the reports and sums them up, their holds as a history. The
// team has ended then.
func (t *Team) Finish(o Order) (Report, stats.History, error) {
	defer t.Stop()
	defer time.AfterFunc(clock.Until(o.End)+afterEnd, t.kill).Stop()
	var mu sync.Mutex
	var sum Report
	var h stats.History
	err := t.each(func(m *member) error {
		var r Report
		if err := m.answer.Decode(&r); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		sum.CPU += r.CPU
		sum.Errors += r.Errors
		if sum.Error == "" {
			sum.Error = r.Error
		}
		sum.Goroutines += r.Goroutines
		sum.Heap += r.Heap
		sum.Stack += r.Stack
		h.Holds = append(h.Holds, r.Holds...)
		h.Contenders += m.config.Threads
		return nil
	})
	return sum, h, err
}

// Stop ends the workers, each by its own process, and waits until they have
// ended.
func (t *Team) Stop() {
	t.kill()
	for _, m := range t.members {
		if m.in != nil {
			m.in.Close()
			m.cmd.Wait()
		}
	}
	t.members = nil
}

func (t *Team) kill() {
	for _, m := range t.members {
		if m.cmd.Process != nil {
			m.cmd.Process.Kill()
		}
	}
}

// each does something with all members at once. Of many errors, which tend to
// be the same, it returns the first.
func (t *Team) each(do func(*member) error) error {
	errs := make([]error, len(t.members))
	var all sync.WaitGroup
	for i, m := range t.members {
		all.Go(func() { errs[i] = m.explain(do(m)) })
	}
	all.Wait()
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return fmt.Errorf("%d of %d workers, the first: %w", len(errs), len(t.members), errs[0])
}

// explain adds what the worker wrote to its standard error, once it has ended:
// before that it may still be writing.
func (m *member) explain(err error) error {
	if err == nil || m.in == nil {
		return err
	}
	m.cmd.Process.Kill()
	m.cmd.Wait()
	text := bytes.TrimSpace(m.stderr.Bytes())
	return fmt.Errorf("worker: %w: %s", err, text[:min(len(text), 2000)])
}
