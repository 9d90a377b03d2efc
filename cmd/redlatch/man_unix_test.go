//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// everyCommand returns all commands that users see.
func everyCommand() []*cobra.Command {
	return documented(newRoot(&reporter{}))
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

func TestEveryCommandAndFlagIsInItsManualPage(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "man")
	if code, _, stderr := command(t, "man", dir); code != 0 || stderr != "" {
		t.Fatalf("exit %d, %s", code, stderr)
	}
	root, err := os.ReadFile(filepath.Join(dir, "redlatch.1"))
	must(t, err)
	for _, cmd := range everyCommand() {
		path := filepath.Join(dir, pageName(cmd)+".1")
		source, err := os.ReadFile(path)
		if err != nil {
			t.Errorf("%s has no page: %v", cmd.CommandPath(), err)
			continue
		}
		if cmd.HasParent() && !strings.Contains(string(root), escape(pageName(cmd))) {
			t.Errorf("%s is not in redlatch.1", cmd.CommandPath())
		}
		shown := render(t, path)
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !strings.Contains(shown, "--"+f.Name) {
				t.Errorf("%s: --%s is not in its page", cmd.CommandPath(), f.Name)
			}
		})
		for line := range strings.SplitSeq(cmd.Example, "\n") {
			if line = strings.TrimSpace(line); !strings.Contains(shown, line) {
				t.Errorf("%s: of its examples %q is not as it was in %s", cmd.CommandPath(), line, source)
			}
		}
	}
	if code, _, stderr := command(t, "man", filepath.Join(dir, "redlatch.1", "x")); code != exitOutput || strings.Count(stderr, "\n") != 1 {
		t.Errorf("into a file: exit %d, %s", code, stderr)
	}
	if code, _, _ := command(t, "man"); code != exitUsage {
		t.Errorf("without a folder: exit %d", code)
	}
}

func TestManualPagesShowTextsAsTheyAre(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.1")
	odd := `a\nb -- 'c' ` + "`d` ~e ^f"
	page := ".TH X 1\n.SH NAME\nx \\- y\n.SH DESCRIPTION\n.nf\n" + escape(odd+"\n.g\n'h") + "\n.fi\n"
	must(t, os.WriteFile(path, []byte(page), 0o600))
	shown := render(t, path)
	for _, line := range []string{odd, ".g", "'h"} {
		if !strings.Contains(shown, line) {
			t.Errorf("%q is shown as %s", line, shown)
		}
	}
}

// render returns a page as it is shown, and fails if rendering gives a warning.
// Without groff, it undoes what escape does.
func render(t *testing.T, path string) string {
	t.Helper()
	if _, err := exec.LookPath("groff"); err == nil {
		var out, warnings strings.Builder
		cmd := exec.Command("groff", "-k", "-man", "-Tutf8", "-P-cbou", "-ww", "-rLL=200n", path)
		cmd.Stdout, cmd.Stderr = &out, &warnings
		if err := cmd.Run(); err != nil || warnings.Len() > 0 {
			t.Errorf("groff of %s: %v, %s", filepath.Base(path), err, warnings.String())
		}
		return out.String()
	}
	text, err := os.ReadFile(path)
	must(t, err)
	return strings.NewReplacer(`\-`, "-", `\(aq`, "'", `\(ga`, "`", `\(ti`, "~", `\(ha`, "^", `\e`, `\`, `\&`, "").Replace(string(text))
}

func TestCompletionIsWhatAShellCanRead(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		code, stdout, stderr := command(t, "completion", shell)
		if code != 0 || stderr != "" || len(stdout) < 1000 || !strings.Contains(stdout, "redlatch") {
			t.Errorf("%s: exit %d, %d bytes, %s", shell, code, len(stdout), stderr)
		}
		check, err := exec.LookPath(shell)
		if err != nil {
			continue // bash is always there; other shells are tested if they are installed
		}
		cmd := exec.Command(check, "-n")
		cmd.Stdin = strings.NewReader(stdout)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s -n: %v, %s", shell, err, out)
		}
	}
	for _, args := range [][]string{{"completion"}, {"completion", "tcsh"}, {"completion", "bash", "zsh"}} {
		if code, _, stderr := command(t, args...); code != exitUsage || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%q: exit %d, %s", args, code, stderr)
		}
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
		{[]string{"show", "--nodes", "sqlite:" + state, "ni"}, []string{"nightly\theld", "nightly report\theld"}, "other"},
		{[]string{"break", "--nodes", "redis://127.0.0.1:1", ""}, nil, "error"},
		{[]string{"m"}, nil, "man"},
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

func TestCompletionAfterTheDashesIsThatOfTheCommand(t *testing.T) {
	t.Parallel()
	_, script, _ := command(t, "completion", "bash")
	for _, c := range []struct{ name, before, words, want string }{
		{"with bash-completion", `_command_offset() { COMPREPLY=("offset $1"); }`, `redlatch run job -- gre`, "offset 4"},
		{"with a newer one", `_comp_command_offset() { COMPREPLY=("new $1"); }`, `redlatch run -n job -- grep -`, "new 5"},
		{"with none", "", `redlatch dev -- bas`, "bash"},
		{"before the dashes", `_command_offset() { COMPREPLY=("offset $1"); }; __start_redlatch() { COMPREPLY=(ours); }`, `redlatch run jo`, "ours"},
		{"of another verb", `_command_offset() { COMPREPLY=("offset $1"); }; __start_redlatch() { COMPREPLY=(ours); }`, `redlatch show -- jo`, "ours"},
	} {
		run := exec.Command("bash", "--norc", "--noprofile", "-c",
			script+"\n"+c.before+"\nCOMP_WORDS=("+c.words+"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); f=$(complete -p redlatch); f=${f##*-F }; ${f% *} redlatch; printf '%s\\n' \"${COMPREPLY[@]}\"")
		out, err := run.CombinedOutput()
		if err != nil || !strings.Contains("\n"+string(out), "\n"+c.want+"\n") {
			t.Errorf("%s: %v, %q, want %q", c.name, err, out, c.want)
		}
	}
	// If the other shells are installed, TestCompletionIsWhatAShellCanRead has
	// them read it.
	if _, zsh, _ := command(t, "completion", "zsh"); !strings.Contains(zsh, "_normal") || strings.Index(zsh, "_normal") > strings.LastIndex(zsh, "$funcstack[1]") {
		t.Error("zsh: what follows the dashes is not completed before cobra's function is called")
	}
	if _, fish, _ := command(t, "completion", "fish"); !strings.Contains(fish, "__redlatch_complete_wrapped") {
		t.Error("fish: what follows the dashes is not completed")
	}
	// After the dashes our own completion offers nothing.
	if _, stdout, _ := command(t, "__complete", "run", "job", "--", ""); !strings.HasPrefix(stdout, ":4\n") {
		t.Errorf("after the dashes we offer %q", stdout)
	}
}
