package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Options are the settings of Run.
type Options struct {
	// NoFence lets the account accept every write.
	NoFence bool
	// Pace is how long the demo waits after each line, for the reader.
	Pace time.Duration
	// Print gets each line when it is known.
	Print func(Line) error

	observe func(http.Handler) http.Handler // around the account, for tests
}

// Line is one line of the demo.
type Line struct {
	Who  string // empty for a heading
	Tone Tone
	Text string
}

// Tone says what a line means.
type Tone string

// The tones.
const (
	Heading Tone = "heading"
	Plain   Tone = "plain"
	Good    Tone = "good"  // a promise was kept
	Fault   Tone = "fault" // a fault that the demo causes
	Bad     Tone = "bad"   // damage
)

var (
	// ErrUnsupported is returned on a system that cannot stop a process.
	ErrUnsupported = errors.New("the demo stops a process, which this system cannot do")

	// ErrBroken is returned when something happened that redlatch promises not
	// to let happen.
	ErrBroken = errors.New("a promise was broken")
)

const (
	// ttl is the time to live of the lock. After it the lock of a paused holder
	// is free.
	ttl = 3 * time.Second
	// nodeCount is the number of nodes.
	nodeCount = 5
	// patience is how long a process may take to report.
	patience = time.Minute
)

// story is a run of the demo.
type story struct {
	Options
	ctx       context.Context
	account   *account
	nodes     []*process
	addresses []string // of the nodes
	clients   []*process
	reports   chan report
	broken    bool // a promise was
}

// failure is the panic with which a part of the story ends the run.
type failure struct{ error }

// Run runs the demo, and ends every process that it started.
func Run(ctx context.Context, opts Options) (err error) {
	if !canPause {
		return ErrUnsupported
	}
	// A process has one report pending at most, and an error.
	s := &story{Options: opts, ctx: ctx, reports: make(chan report, 100)}
	defer s.end()
	defer func() {
		switch p := recover().(type) {
		case nil:
		case failure:
			err = p.error
		default:
			panic(p)
		}
	}()
	began := time.Now()
	s.open()
	s.contention()
	s.pausedHolder()
	s.deadServers()
	if s.broken {
		return ErrBroken
	}
	other := "redlatch demo --no-fence shows the same without the check of tokens"
	if s.NoFence {
		other = "redlatch demo shows the same with the check of tokens"
	}
	s.say("", Plain, "%.0f s. %s.", time.Since(began).Seconds(), other)
	return nil
}

// must ends the run with an error, unless that is nil.
func must(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// end ends what runs.
func (s *story) end() {
	for _, p := range append(s.clients, s.nodes...) {
		p.kill()
	}
	if s.account != nil {
		s.account.server.Close()
	}
}

// say prints a line.
func (s *story) say(who string, tone Tone, format string, args ...any) {
	must(s.Print(Line{who, tone, fmt.Sprintf(format, args...)}))
	select {
	case <-time.After(s.Pace):
	case <-s.ctx.Done():
		must(context.Cause(s.ctx))
	}
}

// promise prints a line about something that redlatch promises.
func (s *story) promise(kept bool, who, format string, args ...any) {
	tone := Good
	if !kept {
		s.broken, tone = true, Bad
	}
	s.say(who, tone, format, args...)
}

// next returns the next report of any process.
func (s *story) next() report {
	select {
	case r := <-s.reports:
		must(r.err)
		return r
	case <-time.After(patience):
		must(fmt.Errorf("no process has reported for %v", patience))
	case <-s.ctx.Done():
		must(context.Cause(s.ctx))
	}
	panic("unreachable")
}

// expect returns the next report, which must be from one process, and one of a
// few.
func (s *story) expect(from *process, which ...what) event {
	r := s.next()
	if r.from != from || !slices.Contains(which, r.What) {
		must(fmt.Errorf("%s reported %q %s, in place of %q of %s", r.from.name, r.What, r.Text, which, from.name))
	}
	return r.event
}

// start starts a node, or a client.
func (s *story) start(name string, args ...string) *process {
	p, err := start(name, s.reports, args...)
	must(err)
	return p
}

// client starts a client.
func (s *story) client(o order) *process {
	o.Account, o.Nodes, o.TTL, o.Times = s.account.url, s.addresses, ttl, max(1, o.Times)
	text, err := json.Marshal(o)
	must(err)
	p := s.start(o.Name, string(text))
	s.clients = append(s.clients, p)
	return p
}
