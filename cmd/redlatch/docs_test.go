package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/snippets"
)

// TestCommandLinesOfTheDocumentationAreUnderstood parses every command line
// of ours that the documentation shows: verb, flags, their values, arguments.
func TestCommandLinesOfTheDocumentationAreUnderstood(t *testing.T) {
	blocks, err := snippets.Blocks("../..")
	must(t, err)
	seen := 0
	for _, b := range blocks {
		_, script := snippets.Script(b)
		for _, args := range snippets.Arguments("redlatch", script) {
			seen++
			if err := understand(args); err != nil {
				t.Errorf("%s: redlatch %s: %v", b.Where(), strings.Join(args, " "), err)
			}
		}
	}
	if seen < 10 {
		t.Errorf("found %d command lines of redlatch in %d blocks: the documentation has more", seen, len(blocks))
	}
}

// understand parses a command line as the command itself would, and runs
// nothing.
func understand(args []string) error {
	root := newRoot(&reporter{w: io.Discard})
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if cmd == root && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return fmt.Errorf("unknown command %q", rest[0])
	}
	if slices.Contains(rest, "--help") {
		return nil
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

// TestDocumentationNamesEveryMetricAndEvent: what is written for machines is
// described for those who configure them.
func TestDocumentationNamesEveryMetricAndEvent(t *testing.T) {
	text, err := os.ReadFile("../../docs/command.md")
	must(t, err)
	var words []string
	for _, g := range gauges {
		name := metricPrefix + g.name
		if g.over != "" {
			name += "{" + g.over + "}"
		}
		words = append(words, name)
	}
	words = append(append(words, outcomes...), lostCauses...)
	for _, file := range []string{"held.go", "report.go", "run.go", "lock.go"} {
		source, err := os.ReadFile(file)
		must(t, err)
		for _, m := range regexp.MustCompile(`\.event\(\S+ "([a-z]+)"`).FindAllStringSubmatch(string(source), -1) {
			words = append(words, m[1])
		}
	}
	if len(words) < 35 {
		t.Errorf("found %d words: the source looks otherwise now", len(words))
	}
	words = append(words, "lost", "warning")
	for _, word := range words {
		if word != "" && !strings.Contains(string(text), "`"+word+"`") {
			t.Errorf("docs/command.md does not have `%s`", word)
		}
	}
}

// TestDocumentationHasEveryExitCode: the table is that of the help, and has every
// code that the command can end with by itself.
func TestDocumentationHasEveryExitCode(t *testing.T) {
	text, err := os.ReadFile("../../docs/command.md")
	must(t, err)
	known := map[string]bool{}
	for _, e := range exitCodes {
		known[e.code] = true
		row := fmt.Sprintf("| %s | %s | %s |\n", e.code, e.means, cmp.Or(strings.Join(e.verbs, ", "), "all"))
		if !strings.Contains(string(text), row) {
			t.Errorf("docs/command.md does not have %s", row)
		}
		for _, verb := range e.verbs {
			if cmd, _, err := newRoot(&reporter{}).Find([]string{verb}); err != nil || cmd.Name() != verb {
				t.Errorf("%s is of %s, which is no verb", e.code, verb)
			}
		}
	}
	for _, code := range []int{exitUsage, exitNoQuorum, exitCannotCreate, exitOutput, exitHeld, exitLost, exitCannotRun, exitNotFound} {
		if !known[strconv.Itoa(code)] {
			t.Errorf("%d is in no table", code)
		}
	}
}

// TestAlertsUseMetricsThatExist: an alert on a metric that was renamed never
// fires.
func TestAlertsUseMetricsThatExist(t *testing.T) {
	text, err := os.ReadFile("../../examples/alerts/jobs.rules.yaml")
	must(t, err)
	found := regexp.MustCompile(metricPrefix+`[a-z_]+`).FindAllString(string(text), -1)
	for _, name := range found {
		if !slices.ContainsFunc(gauges, func(g struct{ name, over, help string }) bool { return metricPrefix+g.name == name }) {
			t.Errorf("there is no metric %s", name)
		}
	}
	if len(found) < 8 {
		t.Errorf("found %d metrics", len(found))
	}
}
