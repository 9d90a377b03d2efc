package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
)

// reporter writes to stderr what happens, for a person, or with --json as lines
// for a program. Stdout is CMD's.
type reporter struct {
	w     io.Writer
	quiet bool
	json  bool // of stderr, and of stdout if the verb writes to it

	mu   sync.Mutex
	held fields // of the locks that are held; they are in every line
}

func (r *reporter) register(flags *pflag.FlagSet) {
	flags.BoolVarP(&r.quiet, "quiet", "q", false, "print errors only: nothing while waiting, nor when another holds the lock or completed the job")
	r.registerJSON(flags, "make stderr lines of JSON, one for each event")
}

// runFacts is what is known of locks that were acquired.
type runFacts struct {
	leases []*redlatch.Lease
	waited time.Duration
	held   time.Duration
}

// print writes to stdout: fields as a line of JSON, or a text.
func (r *reporter) print(out io.Writer, f fields, text string) error {
	if r.json {
		return unwritten(writeJSON(out, f))
	}
	_, err := io.WriteString(out, text)
	return unwritten(err)
}

// emit writes a line. With --quiet those in JSON are warnings and errors alone.
func (r *reporter) emit(level slog.Level, text string, f fields) {
	if !r.json {
		r.line(text, "")
		return
	}
	if r.quiet && level < slog.LevelWarn {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	line := fields{}.add("time", time.Now().UTC().Format("2006-01-02T15:04:05.000Z07:00")).add("level", level.String())
	writeJSON(r.w, slices.Concat(line, f, r.held)) // if stderr is gone, there is nowhere to report it
}

// tell reports what happened. The event is one word, for programs.
func (r *reporter) tell(level slog.Level, event, name, text string, more fields) {
	f := fields{}.add("event", event).with("name", name).add("message", text)
	r.emit(level, text, append(f, more...))
}

// event is tell for what only programs get.
func (r *reporter) event(level slog.Level, event, name, text string, more fields) {
	if r.json {
		r.tell(level, event, name, text, more)
	}
}

// warn reports what the outcome does not show.
func (r *reporter) warn(name, format string, args ...any) {
	r.tell(slog.LevelWarn, "warning", name, message(fmt.Errorf(format, args...)), nil)
}

// end reports an outcome: in text if there is a message, in JSON always.
func (r *reporter) end(o *outcome) {
	text, level := "", slog.LevelError
	if o.err != nil {
		text = message(o.err)
	}
	if o.err == nil || o.event == "held" || o.event == "completed" {
		level = slog.LevelInfo
	}
	if !r.json {
		if o.err != nil && (level > slog.LevelInfo || !r.quiet) {
			r.line(text, o.hint)
		}
		return
	}
	f := fields{}.add("event", o.event).with("name", o.name).with("once", o.once)
	if o.once != "" {
		f = f.add("ran", o.ran)
	}
	f = f.add("exit", o.code).with("message", text).with("cause", o.cause).with("hint", o.hint).with("nodes", o.nodes)
	if held, ok := errors.AsType[*redlatch.HeldError](o.err); ok {
		f = f.with("holders", holdersJSON(held.Holders))
	}
	if o.run != nil {
		f = append(f, leaseFields(o.run.leases)...).add("waited", o.run.waited).add("held", o.run.held)
	}
	r.emit(level, text, f)
}

// leaseFields describe locks that are held, or were.
func leaseFields(leases []*redlatch.Lease) fields {
	switch len(leases) {
	case 0:
		return nil
	case 1:
		return append(fields{}.add("token", leases[0].Token()), shareOf(leases[0])...).add("owner", leases[0].Owner())
	}
	var locks []fields
	for _, l := range leases {
		locks = append(locks, fields{}.add("name", l.Name()).add("token", l.Token()))
	}
	return fields{}.add("locks", locks).add("owner", leases[0].Owner())
}

// waiting reports a wait.
func (r *reporter) waiting(v waitView) {
	text := strings.TrimPrefix(v.line(), "redlatch: ")
	r.tell(slog.LevelInfo, "waiting", v.name, text, fields{}.
		with("holders", holdersJSON(v.holders)).with("place", v.place).add("waited", v.waited).with("left", v.left))
}

// reduced reports which nodes are quarantined, and returns whether there are any.
func (r *reporter) reduced(name string, client *redlatch.Client) bool {
	out := admin.New(client).Quarantined()
	for _, node := range out {
		text := message(fmt.Errorf("%v; until then fewer other nodes may fail", node))
		r.tell(slog.LevelWarn, "quarantined", name, text, fields{}.add("node", node.Node))
	}
	return len(out) > 0
}

func (r *reporter) line(text, hint string) {
	if hint != "" {
		text += "; " + hint
	}
	fmt.Fprintf(r.w, "redlatch: %s\n", text)
}

// holding adds the locks that are held to every line from now on; none ends
// that.
func (r *reporter) holding(leases []*redlatch.Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = leaseFields(leases)
}

// lostTerm reports that a leader lost its lock, and waits for it again.
func (r *reporter) lostTerm(name string, end *outcome) {
	if r.json {
		end.name = name
		r.end(end)
		return
	}
	r.warn(name, "%v; campaigning again", end.err)
}

// forLibrary returns the logger of a client. It prints what endangers locks, with
// --quiet too.
func (r *reporter) forLibrary() *slog.Logger { return slog.New(dangers{slog.DiscardHandler, r}) }

// dangers prints the errors of the library: what endangers locks.
type dangers struct {
	slog.Handler
	to *reporter
}

func (dangers) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }

// Handle implements slog.Handler.
func (d dangers) Handle(_ context.Context, line slog.Record) error {
	text := strings.TrimPrefix(line.Message, "redlatch: ")
	line.Attrs(func(a slog.Attr) bool {
		if a.Key == "node" {
			text = a.Value.String() + ": " + text
		}
		return true
	})
	d.to.warn("", "%s", text)
	return nil
}

// since is how long a lock has been held, for a line of the log.
func since(at time.Time) fields { return fields{}.add("held", time.Since(at)) }
