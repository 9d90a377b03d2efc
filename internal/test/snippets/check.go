package snippets

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Check returns all errors in blocks.
func Check(root string, blocks []Block) []error {
	var wrong []error
	for _, b := range blocks {
		switch {
		case b.Lang == "":
			wrong = append(wrong, fmt.Errorf("%s: the block names no language: write ```go, ```sh, ```console, or ```text for what nothing can check", b.Where()))
		case b.Lang == "golang", b.Lang == "shell":
			wrong = append(wrong, fmt.Errorf("%s: the language is %s: write go, sh or console, which are checked", b.Where(), b.Lang))
		case b.Mark != "":
			if err := compare(root, b); err != nil {
				wrong = append(wrong, err)
			}
		case b.Lang == "go":
			wrong = append(wrong, fmt.Errorf("%s: the Go block has no mark: show a region of a file that is built", b.Where()))
		}
		if err := parseShell(b); err != nil {
			wrong = append(wrong, err)
		}
	}
	return wrong
}

// compare compares a block with the source that its mark names.
func compare(root string, b Block) error {
	want, err := Source(root, b.Mark)
	if err != nil {
		return fmt.Errorf("%s: %w", b.Where(), err)
	}
	if b.Text == want {
		return nil
	}
	shown, source := strings.Split(b.Text, "\n"), strings.Split(want, "\n")
	for i := range min(len(shown), len(source)) {
		if shown[i] != source[i] {
			return fmt.Errorf("%s: line %d of the block is not that of %s (make snippets puts it right):\n\tshown:  %s\n\tsource: %s", b.Where(), i+1, b.Mark, shown[i], source[i])
		}
	}
	return fmt.Errorf("%s: the block has %d lines, %s has %d (make snippets puts it right)", b.Where(), len(shown)-1, b.Mark, len(source)-1)
}

// Update returns a Markdown text in which every marked block equals its source.
func Update(root, file, text string) (string, error) {
	all, err := Parse(file, text)
	if err != nil {
		return "", err
	}
	lines := strings.SplitAfter(text, "\n")
	var b strings.Builder
	next := 0
	for _, s := range all {
		if s.Mark == "" {
			continue
		}
		source, err := Source(root, s.Mark)
		if err != nil {
			return "", fmt.Errorf("%s: %w", s.Where(), err)
		}
		b.WriteString(strings.Join(lines[next:s.from], ""))
		b.WriteString(source)
		next = s.to
	}
	b.WriteString(strings.Join(lines[next:], ""))
	return b.String(), nil
}

// Script returns the commands of a shell block, and the shell that they are
// for; that is empty for a block of another language.
func Script(b Block) (shell, script string) {
	switch b.Lang {
	case "sh", "bash":
		return b.Lang, b.Text
	case "console":
		return "sh", typed(b.Text)
	}
	return "", ""
}

// typed returns the commands of a session: the lines after "$ ", and those
// after "> " that continue them.
func typed(text string) string {
	var b strings.Builder
	typing := false
	for line := range strings.Lines(text) {
		rest, command := strings.CutPrefix(line, "$ ")
		more, goesOn := strings.CutPrefix(line, "> ")
		switch {
		case command:
			b.WriteString(rest)
		case goesOn && typing:
			b.WriteString(more)
		}
		typing = command || goesOn && typing
	}
	return b.String()
}

// parseShell has the shell parse a shell block without running it.
func parseShell(b Block) error {
	shell, script := Script(b)
	if shell == "" {
		return nil
	}
	if b.Lang == "console" && script == "" {
		return fmt.Errorf("%s: the console block has no line that begins with $: write ```text if nothing is typed in it", b.Where())
	}
	cmd := exec.Command(shell, "-n")
	cmd.Stdin = strings.NewReader(script)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %s -n: %w: %s", b.Where(), shell, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// UpdateFiles rewrites every Markdown file under root whose blocks differ from
// their sources, and returns which.
func UpdateFiles(root string) (changed []string, err error) {
	pages, err := Pages(root)
	for file, old := range pages {
		text, err := Update(root, file, old)
		if err != nil {
			return changed, err
		}
		if text != old {
			if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(file)), []byte(text), 0o644); err != nil {
				return changed, err
			}
			changed = append(changed, file)
		}
	}
	return changed, err
}
