// Package manual writes manual pages from the texts that --help shows. The
// commands share it.
package manual

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Section returns further sections of a command's page, before its examples.
type Section func(cmd *cobra.Command) string

// Write writes the page of every command into a folder, which is made if it is
// not there.
func Write(root *cobra.Command, dir string, further Section) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, cmd := range Commands(root) {
		path := filepath.Join(dir, PageName(cmd)+".1")
		if err := os.WriteFile(path, []byte(page(cmd, further)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Commands returns the commands that have a page: the root and its verbs.
func Commands(root *cobra.Command) []*cobra.Command {
	return append([]*cobra.Command{root}, documented(root)...)
}

// documented returns the verbs that have a page of their own.
func documented(root *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, cmd := range root.Commands() {
		if cmd.IsAvailableCommand() && cmd.Name() != "help" {
			all = append(all, cmd)
		}
	}
	return all
}

// PageName returns the name of a command's page.
func PageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// page returns the page of a command.
func page(cmd *cobra.Command, further Section) string {
	cmd.InitDefaultHelpFlag()
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p(`.TH %s 1 "" "redlatch" "redlatch"`, strings.ToUpper(PageName(cmd)))
	p(".SH NAME\n%s \\- %s", Escape(PageName(cmd)), Escape(cmd.Short))
	p(".SH SYNOPSIS")
	verbs := documented(cmd)
	if len(verbs) == 0 {
		p(".B %s\n%s", Escape(cmd.CommandPath()), Escape(strings.TrimPrefix(cmd.Use, cmd.Name()+" ")))
	} else {
		p(".B %s\n.I COMMAND\n[flags] [arguments]", Escape(cmd.CommandPath()))
	}
	p(".SH DESCRIPTION")
	b.WriteString(Paragraphs(cmd.Long))
	if len(verbs) > 0 {
		p(".SH COMMANDS")
		for _, sub := range verbs {
			p(".TP\n.BR %s (1)\n%s.", Escape(PageName(sub)), Escape(sub.Short))
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
	if further != nil {
		b.WriteString(further(cmd))
	}
	if cmd.Example != "" {
		p(".SH EXAMPLES\n.nf\n%s\n.fi", Escape(cmd.Example))
	}
	var also []string
	for _, other := range Commands(cmd.Root()) {
		if other != cmd {
			also = append(also, ".BR "+Escape(PageName(other))+" (1)")
		}
	}
	if len(also) == 0 {
		also = []string{".BR redlatch (1)"} // the page of another command of ours
	}
	p(".SH SEE ALSO\n%s", strings.Join(also, ",\n"))
	return b.String()
}

// option is a flag with its value, its default, and what it is for.
func option(f *pflag.Flag) string {
	value, usage := pflag.UnquoteUsage(f)
	head := "\\-\\-" + Escape(f.Name)
	if f.Shorthand != "" {
		head = "\\-" + f.Shorthand + ", " + head
	}
	if value != "" {
		head += " \\fI" + Escape(value) + "\\fR"
	}
	if d := f.DefValue; d != "" && d != "false" && d != "0" && d != "0s" && d != "[]" && !strings.Contains(usage, "(default") {
		usage += " (default " + d + ")"
	}
	return ".TP\n\\fB" + head + "\\fR\n" + Escape(usage) + "\n"
}

// Paragraphs joins lines to running text, and keeps indented ones as they are.
func Paragraphs(text string) string {
	var b strings.Builder
	asIs := false
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		// Also a line of a table that begins with a number.
		indented := strings.HasPrefix(line, " ") || strings.HasPrefix(line, "128+N")
		if indented != asIs {
			b.WriteString(map[bool]string{true: ".nf\n", false: ".fi\n"}[indented])
			asIs = indented
		}
		if line == "" {
			b.WriteString(".PP\n")
			continue
		}
		b.WriteString(Escape(line) + "\n")
	}
	if asIs {
		b.WriteString(".fi\n")
	}
	return b.String()
}

// Escape escapes text that has a meaning in a page: backslashes, dashes that
// readers copy, lines that begin like a request.
func Escape(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", "\\(ga", "~", `\(ti`, "^", `\(ha`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
