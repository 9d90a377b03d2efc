package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newMan writes the manual pages. It is for packagers, and so is hidden.
func newMan() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the manual pages into a folder",
		Long:    "Write a manual page for every command into the folder DIR, which is made if it is not there.",
		Example: "  redlatch man build/man && man -l build/man/redlatch-run.1",
		Hidden:  true,
		Args:    oneArg("folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := writeManual(cmd.Root(), args[0]); err != nil {
				return &outcome{code: exitOutput, event: "output", err: fmt.Errorf("the manual cannot be written: %w", err)}
			}
			return nil
		},
	}
}

// settingsSection says from where else flags get their values.
func settingsSection(cmd *cobra.Command) string {
	if cmd.Flags().Lookup("nodes") == nil && cmd.HasParent() {
		return ""
	}
	return ".SH ENVIRONMENT AND FILES\n" + paragraphs(`A flag that is not given is taken from the environment, as REDLATCH_ and its name
in capitals, and else from the file $REDLATCH_CONFIG, else
$XDG_CONFIG_HOME/redlatch/config, else ~/.config/redlatch/config: lines of key =
value with the keys `+strings.Join(settings, ", ")+`. REDLATCH_PASSWORD is the password for addresses without one.
NO_COLOR leaves out colours.`)
}

// writeManual writes the page of every command into a folder, which is made if it
// is not there. The texts are those that --help shows.
func writeManual(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, cmd := range documented(root) {
		path := filepath.Join(dir, pageName(cmd)+".1")
		if err := os.WriteFile(path, []byte(page(cmd)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// documented returns the commands that have a page: the root and its verbs.
func documented(root *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{root}
	for _, cmd := range root.Commands() {
		if cmd.IsAvailableCommand() && cmd.Name() != "help" {
			all = append(all, cmd)
		}
	}
	return all
}

// pageName returns the name of a command's page.
func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// page returns the page of a command.
func page(cmd *cobra.Command) string {
	cmd.InitDefaultHelpFlag()
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p(`.TH %s 1 "" "redlatch" "redlatch"`, strings.ToUpper(pageName(cmd)))
	p(".SH NAME\n%s \\- %s", escape(pageName(cmd)), escape(cmd.Short))
	p(".SH SYNOPSIS")
	verbs := documented(cmd)[1:]
	if len(verbs) == 0 {
		p(".B %s\n%s", escape(cmd.CommandPath()), escape(strings.TrimPrefix(cmd.Use, cmd.Name()+" ")))
	} else {
		p(".B %s\n.I COMMAND\n[flags] [arguments]", escape(cmd.CommandPath()))
	}
	p(".SH DESCRIPTION")
	b.WriteString(paragraphs(cmd.Long))
	if len(verbs) > 0 {
		p(".SH COMMANDS")
		for _, sub := range verbs {
			p(".TP\n.BR %s (1)\n%s.", escape(pageName(sub)), escape(sub.Short))
		}
	}
	if cmd.HasAvailableLocalFlags() {
		p(".SH OPTIONS")
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				b.WriteString(option(f))
			}
		})
	}
	b.WriteString(settingsSection(cmd))
	if cmd.Example != "" {
		p(".SH EXAMPLES\n.nf\n%s\n.fi", escape(cmd.Example))
	}
	var also []string
	for _, other := range documented(cmd.Root()) {
		if other != cmd {
			also = append(also, ".BR "+escape(pageName(other))+" (1)")
		}
	}
	p(".SH SEE ALSO\n%s", strings.Join(also, ",\n"))
	return b.String()
}

// option is a flag with its value, its default, and what it is for.
func option(f *pflag.Flag) string {
	value, usage := pflag.UnquoteUsage(f)
	head := "\\-\\-" + escape(f.Name)
	if f.Shorthand != "" {
		head = "\\-" + f.Shorthand + ", " + head
	}
	if value != "" {
		head += " \\fI" + escape(value) + "\\fR"
	}
	if d := f.DefValue; d != "" && d != "false" && d != "0" && d != "0s" && d != "[]" && !strings.Contains(usage, "(default") {
		usage += " (default " + d + ")"
	}
	return ".TP\n\\fB" + head + "\\fR\n" + escape(usage) + "\n"
}

// paragraphs joins lines to running text, and keeps indented ones as they are.
func paragraphs(text string) string {
	var b strings.Builder
	asIs := false
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		indented := strings.HasPrefix(line, " ")
		if indented != asIs {
			b.WriteString(map[bool]string{true: ".nf\n", false: ".fi\n"}[indented])
			asIs = indented
		}
		if line == "" {
			b.WriteString(".PP\n")
			continue
		}
		b.WriteString(escape(line) + "\n")
	}
	if asIs {
		b.WriteString(".fi\n")
	}
	return b.String()
}

// escape escapes text that has a meaning in a page: backslashes, dashes that
// readers copy, lines that begin like a request.
func escape(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", "\\(ga", "~", `\(ti`, "^", `\(ha`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
