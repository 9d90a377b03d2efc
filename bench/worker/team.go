package worker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
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
	out    *bufio.Reader
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
	var mu sync.Mutex
	var failed error
	turns := make(chan struct{}, startingAtOnce)
	var all sync.WaitGroup
	for _, c := range configs {
		turns <- struct{}{}
		mu.Lock()
		stop := failed != nil
		mu.Unlock()
		if stop || ctx.Err() != nil {
			break
		}
		all.Go(func() {
			defer func() { <-turns }()
			m, err := startMember(ctx, program, c)
			mu.Lock()
			defer mu.Unlock()
			if m != nil {
				t.members = append(t.members, m)
			}
			if err != nil && failed == nil {
				failed = err
			}
		})
	}
	all.Wait()
	if failed == nil {
		failed = ctx.Err()
	}
	if failed != nil {
		t.Stop()
		return nil, failed
	}
	return t, nil
}

// startMember starts a worker and waits until it is ready.
func startMember(ctx context.Context, program string, c Config) (*member, error) {
	m := &member{config: c, cmd: exec.CommandContext(ctx, program, Argument)}
	m.cmd.Stderr = &m.stderr
	in, err := m.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := m.cmd.Start(); err != nil {
		return nil, err
	}
	m.in, m.out = in, bufio.NewReader(out)
	if err := m.send(c); err != nil {
		return m, m.explain(err)
	}
	line, err := m.out.ReadString('\n')
	if err != nil || line != readyLine {
		return m, m.explain(fmt.Errorf("worker is not ready: %q, %v", line, err))
	}
	return m, nil
}

// Begin gives all the same order.
func (t *Team) Begin(o Order) error {
	return t.each(func(m *member) error { return m.explain(m.send(o)) })
}

// afterEnd is how long a worker may take to come to its end: a contender
// finishes what it is at, and that can be waiting for a frozen server.
const afterEnd = 40 * time.Second

// Finish waits for the reports. The team is no more after that.
func (t *Team) Finish(o Order) (Report, stats.History, error) {
	defer t.Stop()
	late := time.AfterFunc(clock.Until(o.End)+afterEnd, t.kill)
	defer late.Stop()
	var mu sync.Mutex
	var sum Report
	var h stats.History
	err := t.each(func(m *member) error {
		r, holds, err := readReport(m.out)
		if err != nil {
			return m.explain(err)
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
		h.Holds = append(h.Holds, holds...)
		h.Contenders += m.config.Threads
		return nil
	})
	return sum, h, err
}

// Stop ends the workers, each by its own process, and waits until they are
// gone.
func (t *Team) Stop() {
	t.kill()
	for _, m := range t.members {
		m.in.Close()
		m.cmd.Wait()
	}
	t.members = nil
}

func (t *Team) kill() {
	for _, m := range t.members {
		m.cmd.Process.Kill()
	}
}

// each does something with all members at once. Of many errors, which tend to
// be the same, it returns the first.
func (t *Team) each(do func(*member) error) error {
	errs := make([]error, len(t.members))
	var all sync.WaitGroup
	for i, m := range t.members {
		all.Go(func() { errs[i] = do(m) })
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

func (m *member) send(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = m.in.Write(append(b, '\n'))
	return err
}

// explain adds what the worker wrote to its standard error, once it has ended:
// before that it may still be writing.
func (m *member) explain(err error) error {
	if err == nil {
		return nil
	}
	m.cmd.Process.Kill()
	m.cmd.Wait()
	if text := bytes.TrimSpace(m.stderr.Bytes()); len(text) > 0 {
		return fmt.Errorf("%w: %s", err, text[:min(len(text), 2000)])
	}
	return err
}
