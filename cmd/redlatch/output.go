package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/terminal"
)

// fields are an object of JSON, or a part of a line of the log, in their order.
type fields []slog.Attr

// add appends a field. Tokens become strings: readers that keep numbers as
// doubles must not round them. Times are in UTC. Durations are in milliseconds,
// and their keys end so.
func (f fields) add(key string, value any) fields {
	switch v := value.(type) {
	case redlatch.Token:
		value = tokenText(v)
	case time.Time:
		value = v.UTC().Format(time.RFC3339Nano)
	case time.Duration:
		key, value = key+"_ms", millis(v)
	}
	return append(f, slog.Any(key, value))
}

// with is add unless the value is zero, or a list without entries.
func (f fields) with(key string, value any) fields {
	v := reflect.ValueOf(value)
	if !v.IsValid() || v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0 {
		return f
	}
	return f.add(key, value)
}

// MarshalJSON implements json.Marshaler.
func (f fields) MarshalJSON() ([]byte, error) {
	b := bytes.NewBufferString("{")
	for i, a := range f {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Quote(a.Key) + ":")
		if err := encoder(b).Encode(a.Value.Any()); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func encoder(out io.Writer) *json.Encoder {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return enc
}

// writeJSON writes v as one line.
func writeJSON(out io.Writer, v any) error { return encoder(visible{out}).Encode(v) }

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// tokenText is a token as users see it: 20 digits, which sort. It is empty for
// none.
func tokenText(t redlatch.Token) string {
	if t == 0 {
		return ""
	}
	return t.String()
}

// visible writes JSON with all that is not printable as an escape. JSON itself
// escapes control characters alone, and marks that turn the direction of the
// text would show a line as something else. Only strings can contain them.
type visible struct{ to io.Writer }

func (v visible) Write(line []byte) (int, error) {
	var out []byte
	for _, r := range string(line) {
		switch high, low := utf16.EncodeRune(r); {
		case r == '\n' || unicode.IsPrint(r):
			out = utf8.AppendRune(out, r)
		case high != unicode.ReplacementChar:
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	if _, err := v.to.Write(out); err != nil {
		return 0, err
	}
	return len(line), nil
}

// harmless returns a text that others wrote, such as a name or an owner, with
// everything escaped that is not printable: a terminal obeys control
// characters, and marks of direction show a name as another one.
func harmless(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// registerJSON gives a verb its --json.
func (r *reporter) registerJSON(flags *pflag.FlagSet, usage string) {
	flags.BoolVar(&r.json, "json", false, usage)
}

// evaluated marks the verbs whose stdout is meant for eval.
const evaluated = "evaluated"

// failEval makes an eval of our stdout fail with our exit code. Scripts should
// check our exit status first. This keeps most scripts with eval "$(redlatch
// lock …)" || exit from continuing without the lock, but not if we are killed,
// since an eval of nothing succeeds.
func failEval(cmd *cobra.Command, say *reporter, code int) {
	if _, ok := cmd.Annotations[evaluated]; ok && !say.json && !isTerminal(os.Stdout) {
		fmt.Fprintf(cmd.OutOrStdout(), "(exit %d)\n", code)
	}
}

// isTerminal reports whether f is a terminal.
func isTerminal(f *os.File) bool { return terminal.IsTerminal(f) }

// paint colours a text for a terminal.
func paint(out io.Writer, colour, text string) string { return terminal.Paint(out, colour, text) }

// quote makes a text one word for every shell that has single quotes.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
