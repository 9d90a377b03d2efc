package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/screen"
)

// choice is a pflag.Value: one of a few words.
type choice struct {
	value *string
	words []string
}

func (c choice) String() string {
	if c.value == nil {
		return ""
	}
	return *c.value
}
func (c choice) Type() string { return strings.Join(c.words, "|") }
func (c choice) Set(s string) error {
	if !slices.Contains(c.words, s) {
		last := len(c.words) - 1
		return fmt.Errorf("must be %s or %s", strings.Join(c.words[:last], ", "), c.words[last])
	}
	*c.value = s
	return nil
}

// registerOutput gives a verb that writes to stdout its -o, the first word
// being the default.
func (r *reporter) registerOutput(flags *pflag.FlagSet, usage string, words ...string) {
	r.format = format(words[0])
	flags.VarP(choice{(*string)(&r.format), words}, "output", "o", usage)
}

// evaluated marks the verbs whose stdout is meant for eval.
const evaluated = "evaluated"

// failEval makes an eval of our stdout fail with our exit code. Scripts should
// check our exit status first. This keeps most scripts with eval "$(redlatch
// lock …)" || exit from continuing without the lock, but not if we are killed,
// since an eval of nothing succeeds.
func failEval(cmd *cobra.Command, say *reporter, code int) {
	if _, ok := cmd.Annotations[evaluated]; ok && say.format != "json" && !isTerminal(os.Stdout) {
		fmt.Fprintf(cmd.OutOrStdout(), "(exit %d)\n", code)
	}
}

// isTerminal reports whether f is a terminal.
func isTerminal(f *os.File) bool { return screen.IsTerminal(f) }

// paint colours a text for a terminal.
func paint(out io.Writer, colour, text string) string { return screen.Paint(out, colour, text) }

// quote makes a text one word for every shell that has single quotes.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// writeJSON writes v as one line.
func writeJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(visible{out})
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// tokenText is a token as users see it: its digits, without leading zeros,
// ready for SQL or a comparison in a shell. In JSON it is a string, since
// readers that keep numbers as doubles must not round it. It is empty for none.
func tokenText(t redlatch.Token) string {
	if t == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(t), 10)
}
