//go:build unix

package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// everyCommand returns all commands that users see.
func everyCommand() []*cobra.Command {
	root := newRoot(&reporter{})
	hidden := func(cmd *cobra.Command) bool {
		return !cmd.IsAvailableCommand() || cmd.Name() == "help" || cmd.Name() == "completion" // those are cobra's
	}
	return append([]*cobra.Command{root}, slices.DeleteFunc(root.Commands(), hidden)...)
}

func TestEveryCommandHasHelpWithExamples(t *testing.T) {
	for _, cmd := range everyCommand() {
		if cmd.Short == "" || cmd.Long == "" || !strings.Contains(cmd.Example, "redlatch") {
			t.Errorf("%s: short %q, %d bytes of help, example %q", cmd.CommandPath(), cmd.Short, len(cmd.Long), cmd.Example)
		}
		for line := range strings.SplitSeq(cmd.Long, "\n") {
			if len([]rune(line)) > 84 {
				t.Errorf("%s: a line of its help is %d wide: %s", cmd.CommandPath(), len(line), line)
			}
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s --%s has no help", cmd.CommandPath(), f.Name)
			}
		})
	}
}

func TestCompletionKnowsFlagsValuesAndNames(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "locks.db")
	for _, name := range []string{"nightly", "nightly report", "other"} {
		if code, _, stderr := command(t, "lock", "--nodes", "sqlite:"+state, name); code != 0 {
			t.Fatal(stderr)
		}
	}
	for _, c := range []struct {
		args  []string
		want  []string
		never string
	}{
		{[]string{"do"}, []string{"doctor"}, ""},
		{[]string{"run", "--on"}, []string{"--on-lost"}, ""},
		{[]string{"run", "--on-lost", ""}, []string{"term", "kill", "ignore"}, ""},
		{[]string{"run", "--guard", "o"}, []string{"on", "off"}, "term"},
		{[]string{"run", "--on-held", ""}, []string{"wait", "fail", "skip"}, ""},
		{[]string{"completion", ""}, []string{"bash", "zsh", "fish"}, ""},
		{[]string{"run", "job", "--", ""}, []string{":0"}, ""}, // the shell offers files
		{[]string{"show", "--nodes", "sqlite:" + state, "ni"}, []string{"nightly\theld", "nightly report\theld"}, "other"},
		{[]string{"break", "--nodes", "redis://127.0.0.1:1", ""}, nil, "error"},
	} {
		_, stdout, _ := command(t, append([]string{"__complete"}, c.args...)...)
		lines := strings.Split(stdout, "\n")
		for _, want := range c.want {
			if !strings.Contains("\n"+strings.Join(lines, "\n"), "\n"+want) {
				t.Errorf("%q completes to %q, without %q", c.args, lines, want)
			}
		}
		if c.never != "" && strings.Contains(stdout, c.never) {
			t.Errorf("%q completes to %q", c.args, lines)
		}
	}
}
