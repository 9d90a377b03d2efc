package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
)

// reporter writes to stderr how a verb ended, for a person or for a program.
// Stdout is CMD's.
type reporter struct {
	w      io.Writer
	quiet  bool
	format format
	logFlag
}

// format is a pflag.Value: text or json.
type format string

func (f *format) String() string { return string(*f) }
func (f *format) Type() string   { return "text|json" }
func (f *format) Set(s string) error {
	if s != "text" && s != "json" {
		return errors.New("must be text or json")
	}
	*f = format(s)
	return nil
}

func (r *reporter) register(flags *pflag.FlagSet) {
	r.format = "text"
	flags.BoolVarP(&r.quiet, "quiet", "q", false, "write nothing while waiting, nor when another holds the lock or has done the job; errors are still written")
	flags.VarP(&r.format, "output", "o", "write stderr in words, or in lines of JSON with one for every outcome")
	r.registerLog(flags)
}

// runFacts is what is known of locks that were acquired.
type runFacts struct {
	leases []*redlatch.Lease
	waited time.Duration
	held   time.Duration
}

// event is a line of JSON. The token is a string: readers that keep numbers
// as doubles must not round it.
type event struct {
	Event   string       `json:"event"`
	Name    string       `json:"name,omitempty"`
	Once    string       `json:"once,omitempty"`
	Ran     *bool        `json:"ran,omitempty"` // with Once
	Exit    *int         `json:"exit,omitempty"`
	Message string       `json:"message,omitempty"`
	Hint    string       `json:"hint,omitempty"`
	Nodes   []string     `json:"nodes,omitempty"`
	Holders []holderJSON `json:"holders,omitempty"`
	Place   int          `json:"place,omitempty"`
	Token   string       `json:"token,omitempty"`
	shareJSON
	Locks  []lockedJSON `json:"locks,omitempty"` // if there are several
	Owner  string       `json:"owner,omitempty"`
	Waited *float64     `json:"waited_ms,omitempty"`
	Held   *float64     `json:"held_ms,omitempty"`
	Left   *float64     `json:"left_ms,omitempty"`
}

// lockedJSON is one of several locks.
type lockedJSON struct {
	Name  string `json:"name"`
	Token string `json:"token"`
}

// end reports an outcome: in text if there is a message, in JSON always.
func (r *reporter) end(o *outcome) {
	if r.quiet && (o.event == "held" || o.event == "completed" || o.err == nil) {
		return
	}
	if r.logs() {
		r.logEnd(o)
		return
	}
	if r.format != "json" {
		if o.err != nil {
			r.line(message(o.err), o.hint)
		}
		return
	}
	e := event{Event: o.event, Name: o.name, Exit: &o.code, Hint: o.hint, Nodes: o.nodes}
	if o.err != nil {
		e.Message = message(o.err)
	}
	if o.once != "" {
		e.Once, e.Ran = o.once, &o.ran
	}
	e.Holders = holdersIn(o.err)
	if f := o.run; f != nil {
		e.Token, e.Owner, e.shareJSON = tokenText(f.leases[0].Token()), f.leases[0].Owner(), shareOf(f.leases[0])
		if len(f.leases) > 1 {
			e.Token, e.Locks = "", lockedOf(f.leases)
		}
		e.Waited, e.Held = ms(f.waited), ms(f.held)
	}
	r.json(e)
}

// lockedOf describes several locks.
func lockedOf(leases []*redlatch.Lease) []lockedJSON {
	locks := make([]lockedJSON, len(leases))
	for i, l := range leases {
		locks[i] = lockedJSON{l.Name(), tokenText(l.Token())}
	}
	return locks
}

// holdersIn are the holders that the error of a refused lock names.
func holdersIn(err error) []holderJSON {
	var held *redlatch.HeldError
	if !errors.As(err, &held) {
		return nil
	}
	return holdersJSON(held.Holders)
}

// waiting reports a wait.
func (r *reporter) waiting(v waitView) {
	text := strings.TrimPrefix(v.line(), "redlatch: ")
	if r.logs() {
		attrs := []slog.Attr{slog.Duration("waited", v.waited)}
		if v.place > 0 {
			attrs = append(attrs, slog.Int("place", v.place))
		}
		if len(v.holders) > 0 {
			attrs = append(attrs, slog.Any("holders", holdersJSON(v.holders)))
		}
		if v.left > 0 {
			attrs = append(attrs, slog.Duration("left", v.left))
		}
		r.event(slog.LevelInfo, "waiting", v.name, text, attrs...)
		return
	}
	if r.format == "json" {
		e := event{Event: "waiting", Name: v.name, Message: text, Holders: holdersJSON(v.holders), Place: v.place, Waited: ms(v.waited)}
		if v.left > 0 {
			e.Left = ms(v.left)
		}
		r.json(e)
		return
	}
	r.line(text, "")
}

// warn reports what the outcome does not show.
func (r *reporter) warn(name, format string, args ...any) {
	err := fmt.Errorf(format, args...)
	if r.logs() {
		r.event(slog.LevelWarn, "warning", name, message(err))
		return
	}
	if r.format == "json" {
		r.json(event{Event: "warning", Name: name, Message: message(err)})
		return
	}
	r.line(message(err), "")
}

// reduced reports which nodes are quarantined, and returns whether there are any.
func (r *reporter) reduced(name string, client *redlatch.Client) bool {
	out := admin.New(client).Quarantined()
	for _, node := range out {
		if r.logs() {
			r.event(slog.LevelWarn, "quarantined", name, fmt.Sprintf("%v; until then fewer other nodes may fail", node), slog.String("node", node.Node))
			continue
		}
		r.warn(name, "%v; until then fewer other nodes may fail", node)
	}
	return len(out) > 0
}

func (r *reporter) line(text, hint string) {
	if hint != "" {
		text += "; " + hint
	}
	fmt.Fprintf(r.w, "redlatch: %s\n", text)
}

func (r *reporter) json(e event) {
	writeJSON(r.w, e) // if stderr is gone, there is nowhere to report it
}

func ms(d time.Duration) *float64 {
	f := float64(d.Microseconds()) / 1000
	return &f
}
