package snippets

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
)

var (
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading = regexp.MustCompile(`^#{1,6} (.*)$`)
	code    = regexp.MustCompile("`[^`]*`")
)

// CheckLinks returns an error for every link of a Markdown text to a file or a
// heading of the repository that does not exist.
func CheckLinks(root, file, text string) []error {
	var wrong []error
	for i, line := range prose(text) {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(line, ""), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			if err := follow(root, file, text, m[1]); err != nil {
				wrong = append(wrong, fmt.Errorf("%s:%d: %s leads nowhere: %w", file, i+1, m[1], err))
			}
		}
	}
	return wrong
}

// follow returns an error if the target of a link does not exist.
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
	for _, line := range prose(text) {
		if m := heading.FindStringSubmatch(line); m != nil && slug(m[1]) == anchor {
			return nil
		}
	}
	return fmt.Errorf("there is no heading %s", anchor)
}

// prose returns the lines of a Markdown text, those of its blocks empty.
func prose(text string) []string {
	lines := strings.Split(text, "\n")
	all, err := Parse("", text)
	if err != nil {
		return lines // errors in blocks are reported elsewhere
	}
	for _, s := range all {
		for i := s.from - 1; i <= s.to; i++ {
			lines[i] = ""
		}
	}
	return lines
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
