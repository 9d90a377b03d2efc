package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/redlatch/redlatch"
)

// logFlag is --log-format, and the logger that it asks for.
type logFlag struct {
	logFormat string

	once sync.Once
	log  *slog.Logger

	mu   sync.Mutex
	held []slog.Attr // of the locks that are held; they are in every line
}

func (f *logFlag) registerLog(flags *pflag.FlagSet) {
	f.logFormat = "text"
	flags.Var(choice{&f.logFormat, []string{"text", "json"}}, "log-format", "stderr: text, or a log in JSON, a line for each event with time, level, msg, event, name and token")
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

// logAttr writes times in UTC and to the millisecond, durations in
// milliseconds, and tokens as strings: readers that keep numbers as doubles
// must not round them.
func logAttr(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindTime:
		return slog.String(a.Key, a.Value.Time().UTC().Format("2006-01-02T15:04:05.000Z07:00"))
	case slog.KindDuration:
		return slog.Float64(a.Key+"_ms", *ms(a.Value.Duration()))
	case slog.KindUint64:
		return slog.String(a.Key, strconv.FormatUint(a.Value.Uint64(), 10))
	}
	return a
}

// event writes a line of the log, if there is one. The event is one word for
// filters, the text is for people.
func (r *reporter) event(level slog.Level, event, name, text string, attrs ...slog.Attr) {
	if !r.logs() {
		return
	}
	r.mu.Lock()
	all := []slog.Attr{slog.String("event", event)}
	if name != "" {
		all = append(all, slog.String("name", name))
	}
	all = append(append(all, r.held...), attrs...)
	r.mu.Unlock()
	r.logger().LogAttrs(context.Background(), level, text, all...)
}

// holding has every line from now on name the locks that are held; none ends
// that.
func (r *reporter) holding(leases []*redlatch.Lease) {
	attrs := leaseAttrs(leases)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = attrs
}

// leaseAttrs describe locks that are held, or were.
func leaseAttrs(leases []*redlatch.Lease) (attrs []slog.Attr) {
	switch {
	case len(leases) == 1:
		share := shareOf(leases[0])
		attrs = append(attrs, slog.String("token", tokenText(leases[0].Token())), slog.String("owner", leases[0].Owner()))
		if share.Shared {
			attrs = append(attrs, slog.Bool("shared", true))
		}
		if share.Slots > 0 {
			attrs = append(attrs, slog.Int("slots", share.Slots), slog.Int("slot", *share.Slot))
		}
	case len(leases) > 1:
		attrs = append(attrs, slog.Any("locks", lockedOf(leases)), slog.String("owner", leases[0].Owner()))
	}
	return attrs
}

// logEnd writes how a verb ended, if the log does not say it already.
func (r *reporter) logEnd(o *outcome) {
	level, event := slog.LevelError, "failed"
	attrs := []slog.Attr{slog.Int("exit", o.code)}
	switch o.event {
	case "lost":
		event = "lost"
		attrs = append(attrs, slog.String("cause", o.cause))
	case "held", "completed":
		level, event = slog.LevelInfo, "skipped"
		attrs = append(attrs, slog.String("reason", outcomeName(o)))
	default:
		attrs = append(attrs, slog.String("reason", o.event))
	}
	if o.err == nil {
		return
	}
	if held := holdersIn(o.err); len(held) > 0 {
		attrs = append(attrs, slog.Any("holders", held))
	}
	if o.once != "" {
		attrs = append(attrs, slog.String("once", o.once))
	}
	if o.hint != "" {
		attrs = append(attrs, slog.String("hint", o.hint))
	}
	if o.run != nil {
		attrs = append(leaseAttrs(o.run.leases), attrs...)
		attrs = append(attrs, slog.Duration("waited", o.run.waited), slog.Duration("held", o.run.held))
	}
	r.event(level, event, o.name, message(o.err), attrs...)
}

// lostTerm reports that a leader lost its lock, and waits for it again.
func (r *reporter) lostTerm(name string, end *outcome) {
	if r.logs() {
		end.name = name
		r.logEnd(end)
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
	for i, arg := range args {
		if arg == "--" {
			break
		}
		if arg == "--log-format=json" || arg == "--log-format" && slices.Equal(args[i+1:min(i+2, len(args))], []string{"json"}) {
			r.logFormat = "json"
			return
		}
	}
	if cmd.Flags().Changed("output") {
		return
	}
	format := os.Getenv(variable("log-format"))
	if file, err := readSettings(); format == "" && err == nil {
		format = file.values["log-format"].value
	}
	if format == "json" {
		r.logFormat = format
	}
}

// forLibrary returns the logger of a client; nil if there is no log.
func (r *reporter) forLibrary() *slog.Logger {
	if !r.logs() {
		return nil
	}
	return slog.New(libraryLog{r.logger().Handler()})
}

// libraryLog passes on what the library logs, with an event.
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

// WithAttrs implements slog.Handler.
func (l libraryLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return libraryLog{l.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (l libraryLog) WithGroup(name string) slog.Handler { return libraryLog{l.Handler.WithGroup(name)} }

// visible writes JSON with all that is not printable as an escape. JSON itself
// escapes control characters alone, and marks that turn the direction of the
// text would show a line as something else.
type visible struct{ to io.Writer }

func (v visible) Write(line []byte) (int, error) {
	if _, err := v.to.Write(escapeJSON(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}

// escapeJSON escapes in JSON what is not printable. Only its strings can
// contain that.
func escapeJSON(line []byte) []byte {
	isPlain := func(r rune) bool { return r == '\n' || unicode.IsPrint(r) }
	if utf8.Valid(line) && !strings.ContainsFunc(string(line), func(r rune) bool { return !isPlain(r) }) {
		return line
	}
	var out []byte
	for _, r := range string(line) {
		if isPlain(r) {
			out = utf8.AppendRune(out, r)
			continue
		}
		out = appendEscaped(out, r)
	}
	return out
}

// since is how long ago something was, for a line of the log.
func since(at time.Time) slog.Attr { return slog.Duration("held", time.Since(at)) }
