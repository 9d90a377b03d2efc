package family

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/redlatch/redlatch/bench/clock"
)

// team is the processes of a row, which follow the same orders.
type team struct {
	members []*member
	// version is what the processes say of themselves.
	version string
}

type member struct {
	config  Config
	cmd     *exec.Cmd
	in      io.WriteCloser
	orders  *json.Encoder
	answers *json.Decoder
	stderr  bytes.Buffer
}

// startingAtOnce is how many processes start at the same time.
const startingAtOnce = 4

// startTeam starts a process for each config and waits until all are ready.
// They end with ctx.
func startTeam(ctx context.Context, p Peer, module string, configs []Config) (*team, error) {
	args, env, err := p.command(module)
	if err != nil {
		return nil, err
	}
	t := &team{}
	for _, c := range configs {
		m := &member{config: c, cmd: exec.CommandContext(ctx, args[0], args[1:]...)}
		m.cmd.Env = append(os.Environ(), env...)
		m.cmd.Stderr = &m.stderr
		t.members = append(t.members, m)
	}
	places := make(chan struct{}, startingAtOnce)
	err = t.each(func(m *member) error {
		places <- struct{}{}
		defer func() { <-places }()
		var err error
		if m.in, err = m.cmd.StdinPipe(); err != nil {
			return err
		}
		out, err := m.cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := m.cmd.Start(); err != nil {
			m.in = nil
			return err
		}
		m.orders, m.answers = json.NewEncoder(m.in), json.NewDecoder(out)
		var a Answer
		if err := m.orders.Encode(m.config); err != nil {
			return err
		}
		if err := m.answers.Decode(&a); err != nil {
			return err
		}
		if !a.Ready {
			return fmt.Errorf("it answered %+v before it was ready", a)
		}
		if m == t.members[0] {
			t.version = a.Version
		}
		return nil
	})
	if err != nil {
		t.stop()
		return nil, err
	}
	return t, nil
}

// afterEnd is how long a process may take to end an order.
const afterEnd = 30 * time.Second

// begin gives an order to all; finish waits until all are done with it.
func (t *team) begin(o Order) error {
	return t.each(func(m *member) error { return m.orders.Encode(o) })
}

func (t *team) finish(o Order) (History, Answer, error) {
	defer time.AfterFunc(clock.Until(o.End)+afterEnd, t.kill).Stop()
	var mu sync.Mutex
	var all History
	var sum Answer
	err := t.each(func(m *member) error {
		var mine History
		for {
			var a Answer
			if err := m.answers.Decode(&a); err != nil {
				return err
			}
			if !a.Done {
				mine = append(mine, a.request())
				continue
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, mine...)
			if sum.Errors += a.Errors; sum.Error == "" {
				sum.Error = a.Error
			}
			return nil
		}
	})
	return all, sum, err
}

// cpu returns what the processes used since they started.
func (t *team) cpu() time.Duration {
	var sum time.Duration
	for _, m := range t.members {
		sum += clock.OfProcess(m.cmd.Process.Pid)
	}
	return sum
}

// stop ends the processes, each by its own id, and waits until they have ended.
func (t *team) stop() {
	t.kill()
	for _, m := range t.members {
		if m.in != nil {
			m.in.Close()
			m.cmd.Wait()
		}
	}
	t.members = nil
}

func (t *team) kill() {
	for _, m := range t.members {
		if m.cmd.Process != nil {
			m.cmd.Process.Kill()
		}
	}
}

// each does something with all members at once, and returns the first error,
// with what its process wrote to its standard error.
func (t *team) each(do func(*member) error) error {
	errs := make([]error, len(t.members))
	var all sync.WaitGroup
	for i, m := range t.members {
		all.Go(func() { errs[i] = do(m) })
	}
	all.Wait()
	for i, err := range errs {
		if m := t.members[i]; err != nil {
			if m.in == nil {
				return err
			}
			m.cmd.Process.Kill()
			m.cmd.Wait() // until then it may still write
			text := bytes.TrimSpace(m.stderr.Bytes())
			return fmt.Errorf("a contender's process: %w: %s", err, text[:min(len(text), 2000)])
		}
	}
	return nil
}
