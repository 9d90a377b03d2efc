// Command check searches every instance of the model to its end, and shows how
// much there was to see. It is what make model runs.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/redlatch/redlatch/internal/model"
	"github.com/redlatch/redlatch/internal/progress"
)

// limit is how many states of an instance are searched at the most.
const limit = 6_000_000

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	c := &checker{began: time.Now(), terminal: isTerminal(os.Stderr)}
	c.ctx = progress.With(ctx, c.show)
	c.design()
	c.siblings()
	c.spare()
	c.walks()
	c.clear()
	if ctx.Err() != nil {
		fmt.Println("ended before its time")
		os.Exit(1)
	}
	if c.wrong > 0 {
		fmt.Printf("%d are not as they should be\n", c.wrong)
		os.Exit(1)
	}
	fmt.Printf("all is as it should be, after %v\n", time.Since(c.began).Round(time.Second))
}

type checker struct {
	ctx      context.Context
	began    time.Time
	terminal bool
	what     string
	since    time.Time
	shown    time.Time
	wrong    int
}

// show draws a line that says what is being searched and for how long.
func (c *checker) show() {
	if now := time.Now(); c.terminal && now.Sub(c.shown) > 200*time.Millisecond {
		c.shown = now
		fmt.Fprintf(os.Stderr, "\r\x1b[K%v  %s, for %v", now.Sub(c.began).Round(time.Second), c.what, now.Sub(c.since).Round(time.Second))
	}
}

func (c *checker) clear() {
	if c.terminal {
		fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
}

func (c *checker) begin(what string) { c.what, c.since = what, time.Now() }

func (c *checker) line(format string, args ...any) {
	c.clear()
	fmt.Printf(format+"\n", args...)
}

func (c *checker) fail(format string, args ...any) {
	c.wrong++
	c.line("WRONG: "+format, args...)
}

func (c *checker) design() {
	c.line("The design, in every interleaving")
	c.line("%9s %10s %5s %7s  %s", "states", "steps", "depth", "seconds", "instance")
	for _, a := range model.Arenas() {
		c.begin(a.Name)
		m := model.New(model.Rules{}, a.Bounds)
		r := m.Explore(c.ctx, model.Limits{States: limit})
		if c.ctx.Err() != nil {
			return
		}
		end := ""
		if !r.Complete {
			end = ", not to its end"
		}
		c.line("%9d %10d %5d %7.1f  %s%s", r.States, r.Transitions, r.Depth, r.Took.Seconds(), a.Name, end)
		if r.Trace != nil {
			c.fail("%s: %v\n%s", a.Name, m.Verdict(r.Trace), m.Story(r.Trace))
		}
	}
}

func (c *checker) siblings() {
	c.line("\nSiblings that lack a rule, each to be found broken")
	c.line("%9s %5s  %s", "states", "steps", "sibling: what is wrong")
	for _, s := range model.Siblings() {
		c.begin(s.Name)
		m := model.New(s.Rules, s.Bounds)
		r := m.Explore(c.ctx, model.Limits{States: limit})
		if c.ctx.Err() != nil {
			return
		}
		if r.Trace == nil {
			c.fail("%s: not found broken in %d states", s.Name, r.States)
			continue
		}
		c.line("%9d %5d  %s: %v", r.States, len(r.Trace), s.Name, m.Verdict(r.Trace))
		if v := m.Verdict(r.Trace); v != s.Want {
			c.fail("%s: %v, not %v", s.Name, v, s.Want)
		}
	}
}

func (c *checker) spare() {
	c.line("\nSiblings that hold all the same: see docs/testing/model.md")
	for _, s := range model.Spare() {
		c.begin(s.Name)
		m := model.New(s.Rules, s.Bounds)
		r := m.Explore(c.ctx, model.Limits{States: limit})
		if c.ctx.Err() != nil {
			return
		}
		if r.Trace != nil || !r.Complete {
			c.fail("%s: complete %v\n%s", s.Name, r.Complete, m.Story(r.Trace))
			continue
		}
		c.line("%9d states  %s", r.States, s.Name)
	}
}

func (c *checker) walks() {
	c.begin("random walks of three clients on five nodes")
	c.line("\nRandom walks, three clients on five nodes")
	m := model.New(model.Rules{}, model.Wide())
	trace, steps := m.Walk(c.ctx, uint64(c.began.UnixNano()), 10_000, 400)
	if trace != nil {
		c.fail("%v\n%s", m.Verdict(trace), m.Story(trace))
	}
	c.line("%9d steps, %.1f s", steps, time.Since(c.since).Seconds())
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
