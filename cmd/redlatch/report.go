package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/cmd/internal/flag"
)

// reporter writes to stderr how a verb ended, for a person or for a program.
// Stdout is CMD's. It has three forms: text, lines of JSON (--json), and a log
// (--log-format json).
type reporter struct {
	w     io.Writer
	quiet bool
	json  bool // of stderr, or of stdout if the verb writes to it
	logFlag
}

// ofStderr annotates the flag --json of a verb whose stderr it is the form of.
const ofStderr = "of-stderr"

func (r *reporter) register(flags *pflag.FlagSet) {
	flags.BoolVarP(&r.quiet, "quiet", "q", false, "print errors only: nothing while waiting, nor when another holds the lock or completed the job")
	r.registerJSON(flags, "make stderr lines of JSON, one for every outcome")
	flags.SetAnnotation("json", ofStderr, nil)
	r.registerLog(flags)
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

// emit writes a line in any of the forms.
func (r *reporter) emit(level slog.Level, text string, f fields) {
	switch {
	case r.logs():
		r.mu.Lock()
		f = append(f, r.held...)
		r.mu.Unlock()
		r.logger().LogAttrs(context.Background(), level, text, f...)
	case r.json:
		writeJSON(r.w, f) // if stderr is gone, there is nowhere to report it
	default:
		r.line(text, "")
	}
}

// tell reports what happened. The event is one word, for programs.
func (r *reporter) tell(level slog.Level, event, name, text string, more fields) {
	f := fields{}.add("event", event).with("name", name).add(inMessage, text)
	r.emit(level, text, append(f, more...))
}

// event is tell for what only the log has.
func (r *reporter) event(level slog.Level, event, name, text string, more fields) {
	if r.logs() {
		r.tell(level, event, name, text, more)
	}
}

// warn reports what the outcome does not show.
func (r *reporter) warn(name, format string, args ...any) {
	r.tell(slog.LevelWarn, "warning", name, message(fmt.Errorf(format, args...)), nil)
}

// end reports an outcome: in text and in the log if there is a message, in JSON
// always.
func (r *reporter) end(o *outcome) {
	text := ""
	if o.err != nil {
		text = message(o.err)
	}
	switch asJSON := r.json && !r.logs(); {
	case r.quiet && (o.event == "held" || o.event == "completed" || o.err == nil), o.err == nil && !asJSON:
		return
	case !asJSON && !r.logs():
		r.line(text, o.hint)
		return
	}
	level, event, reason := slog.LevelError, o.event, ""
	if r.logs() {
		level, event, reason = logOutcome(o)
	}
	f := fields{}.add("event", event).with("name", o.name).with("once", o.once)
	if o.once != "" {
		f = f.add("ran", o.ran)
	}
	f = f.add("exit", o.code).with(inMessage, text).with("reason", reason).with("cause", o.cause)
	f = f.with("hint", o.hint).with("nodes", o.nodes)
	var held *redlatch.HeldError
	if errors.As(o.err, &held) {
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

// logFlag is --log-format, and the logger that it asks for.
type logFlag struct {
	logFormat string

	once sync.Once
	log  *slog.Logger

	mu   sync.Mutex
	held fields // of the locks that are held; they are in every line
}

func (f *logFlag) registerLog(flags *pflag.FlagSet) {
	flag.Word(flags, &f.logFormat, "log-format", "", "stderr: text, or a log in JSON, a line for each event with time, level, msg, event, name and token", "text", "json")
}

// logs reports whether stderr is a log. Then nothing else is written to it.
func (r *reporter) logs() bool { return r.logFormat == "json" }

// logger returns the logger of all lines. With --quiet it has warnings and
// errors alone.
func (r *reporter) logger() *slog.Logger {
	r.once.Do(func() {
		least := slog.LevelInfo
		if r.quiet {
			least = slog.LevelWarn
		}
		r.log = slog.New(slog.NewJSONHandler(visible{r.w}, &slog.HandlerOptions{Level: least, ReplaceAttr: logAttr}))
	})
	return r.log
}

// inMessage is the key of a line's text in JSON. The log has it as msg.
const inMessage = "message"

// logAttr leaves out the text, which the line has already, and writes what the
// library logs as add does, times to the millisecond.
func logAttr(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindTime:
		return slog.String(a.Key, a.Value.Time().UTC().Format("2006-01-02T15:04:05.000Z07:00"))
	case slog.KindDuration:
		return slog.Float64(a.Key+"_ms", millis(a.Value.Duration()))
	case slog.KindUint64:
		return slog.String(a.Key, strconv.FormatUint(a.Value.Uint64(), 10))
	}
	if a.Key == inMessage {
		return slog.Attr{}
	}
	return a
}

// holding has every line from now on name the locks that are held; none ends
// that.
func (r *reporter) holding(leases []*redlatch.Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = leaseFields(leases)
}

// logOutcome is how the log names an outcome.
func logOutcome(o *outcome) (level slog.Level, event, reason string) {
	switch o.event {
	case "lost":
		return slog.LevelError, "lost", ""
	case "held", "completed":
		return slog.LevelInfo, "skipped", outcomeName(o)
	}
	return slog.LevelError, "failed", o.event
}

// lostTerm reports that a leader lost its lock, and waits for it again.
func (r *reporter) lostTerm(name string, end *outcome) {
	if r.logs() {
		end.name = name
		r.end(end)
		return
	}
	r.warn(name, "%v; campaigning again", end.err)
}

// settleLog makes an error about the command line or the settings a line of the
// log too, though it came before --log-format was read.
func (r *reporter) settleLog(cmd *cobra.Command, args []string) {
	if cmd == nil || cmd.Flags().Lookup("log-format") == nil || cmd.Flags().Changed("log-format") {
		return
	}
	given := pflag.NewFlagSet("", pflag.ContinueOnError)
	given.ParseErrorsAllowlist.UnknownFlags = true
	given.Usage = func() {}
	format := given.String("log-format", "", "")
	given.Parse(args) // as far as it can
	if *format == "" && !cmd.Flags().Changed("json") {
		*format = os.Getenv(variable("log-format"))
		if file, err := readSettings(); *format == "" && err == nil {
			*format = file.values["log-format"].value
		}
	}
	if *format == "json" {
		r.logFormat = *format
	}
}

// forLibrary returns the logger of a client. Without a log it prints what endangers
// locks, with --quiet too.
func (r *reporter) forLibrary() *slog.Logger {
	if !r.logs() {
		return slog.New(dangers{slog.DiscardHandler, r})
	}
	return slog.New(libraryLog{r.logger().Handler()})
}

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

// libraryLog passes on what the library logs, with an event. The library calls
// neither With nor WithGroup.
type libraryLog struct{ slog.Handler }

// libraryEvents are the events of the library's messages; empty for those that
// our own lines say better, or that are of no interest to a run.
var libraryEvents = map[string]string{
	"lock could not be extended, trying again":                 "extending",
	"lock is extended again":                                   "extended",
	"lock is lost":                                             "",
	"lock could not be released; it will expire after its TTL": "",
	"cannot see whether others wait, trying again":             "",
}

// Handle implements slog.Handler.
func (l libraryLog) Handle(ctx context.Context, line slog.Record) error {
	text := strings.TrimPrefix(line.Message, "redlatch: ")
	event, known := libraryEvents[text]
	switch {
	case known && event == "":
		return nil
	case !known && line.Level >= slog.LevelWarn:
		event = "warning"
	case !known:
		event = "notice"
	}
	ours := slog.NewRecord(line.Time, line.Level, text, 0)
	ours.AddAttrs(slog.String("event", event))
	line.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok {
			a = slog.String(a.Key, message(err))
		}
		ours.AddAttrs(a)
		return true
	})
	return l.Handler.Handle(ctx, ours)
}

// since is how long a lock has been held, for a line of the log.
func since(at time.Time) fields { return fields{}.add("held", time.Since(at)) }
