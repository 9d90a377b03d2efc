package snippets

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
)

// Check returns all errors in a Markdown text: in its blocks and its links.
func Check(root, file, text string) (wrong []error) {
	all, _ := Parse(file, text)
	for _, b := range all {
		if err := b.check(); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", b.Where(), err))
		}
	}
	if want, err := Update(root, file, text); err != nil {
		wrong = append(wrong, err)
	} else if want != text {
		shown, source := strings.Split(text, "\n"), strings.Split(want, "\n")
		i := 0
		for shown[i] == source[i] {
			i++
		}
		wrong = append(wrong, fmt.Errorf("%s:%d: the block is not its source (make snippets puts it right):\n\tshown:  %s\n\tsource: %s", file, i+1, shown[i], source[i]))
	}
	for i, line := range strings.Split(prose(text), "\n") {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(line, ""), -1) {
			if err := follow(root, file, text, m[1]); err != nil {
				wrong = append(wrong, fmt.Errorf("%s:%d: %s leads nowhere: %w", file, i+1, m[1], err))
			}
		}
	}
	return wrong
}

// check returns an error for a block without a source whose text cannot be right.
func (b Block) check() error {
	shell, script := Script(b)
	switch {
	case b.Lang == "":
		return fmt.Errorf("the block names no language: write ```go, ```sh, ```console, or ```text for what nothing can check")
	case b.Lang == "golang", b.Lang == "shell":
		return fmt.Errorf("the language is %s: write go, sh or console, which are checked", b.Lang)
	case b.Lang == "go" && b.Mark == "":
		return fmt.Errorf("the Go block has no mark: show a region of a file that is built")
	case b.Lang == "console" && script == "":
		return fmt.Errorf("the console block has no line that begins with $: write ```text if nothing is typed in it")
	case shell == "":
		return nil
	}
	cmd := exec.Command(shell, "-n")
	cmd.Stdin = strings.NewReader(script)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s -n: %w: %s", shell, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// typed are the lines of a session after "$ ", and those after "> " that continue them.
var typed = regexp.MustCompile(`(?m)^\$ .*\n(?:> .*\n)*`)

// Script returns the commands of a shell block, and the shell that they are
// for; that is empty for a block of another language.
func Script(b Block) (shell, script string) {
	switch b.Lang {
	case "sh", "bash":
		return b.Lang, b.Text
	case "console":
		script = strings.Join(typed.FindAllString(b.Text, -1), "")
		return "sh", regexp.MustCompile(`(?m)^[$>] `).ReplaceAllString(script, "")
	}
	return "", ""
}

var (
	comment = regexp.MustCompile(`(?m)(^|[ \t])#.*$`)
	word    = regexp.MustCompile("^[ \t]+((?:'[^']*'|\"(?:[^\"\\\\]|\\\\.)*\"|\\\\.|\\$\\([^)]*\\)|[^\\s;|&()`'\"\\\\])+)")
	quotes  = regexp.MustCompile(`'([^']*)'|"((?:[^"\\]|\\.)*)"`)
)

// Arguments returns the arguments of each run of our program in a script, also
// through another command or within another run of it, as far as that can be seen
// without a shell: variables and substitutions are not expanded.
func Arguments(program, script string) (all [][]string) {
	script = comment.ReplaceAllString(strings.ReplaceAll(script, "\\\n", " "), "")
	runs := regexp.MustCompile("(?m)(?:^|[\\s;|&(`]|-c ['\"])(?:\\./cmd/)?" + program + "(?:[\\s;|&)`'\"]|$)")
	for at := 0; ; {
		m := runs.FindStringIndex(script[at:])
		if m == nil {
			return all
		}
		at += strings.Index(script[at+m[0]:], program) + m[0] + len(program)
		words := []string{}
		for rest := script[at:]; ; {
			w := word.FindStringSubmatch(rest)
			if w == nil {
				break
			}
			words, rest = append(words, quotes.ReplaceAllString(w[1], "$1$2")), rest[len(w[0]):]
		}
		all = append(all, words)
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^():\s]+)\)`) // with a colon it leads elsewhere
	heading = regexp.MustCompile(`(?m)^#{1,6} (.*)$`)
	code    = regexp.MustCompile("`[^`]*`")
)

// follow returns an error if the target of a link, a file or a heading, does not exist.
func follow(root, file, text, target string) error {
	path, anchor, _ := strings.Cut(target, "#")
	if path != "" {
		full := filepath.Join(root, filepath.Dir(filepath.FromSlash(file)), filepath.FromSlash(path))
		info, err := os.Stat(full)
		if err != nil || anchor == "" || info.IsDir() {
			return err
		}
		other, err := os.ReadFile(full)
		if err != nil {
			return err
		}
		text = string(other)
	}
	for _, m := range heading.FindAllStringSubmatch(prose(text), -1) {
		if slug(m[1]) == anchor {
			return nil
		}
	}
	return fmt.Errorf("there is no heading %s", anchor)
}

// slug returns the anchor of a heading.
func slug(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(title))
}
