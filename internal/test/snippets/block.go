package snippets

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A Block is a fenced block of a Markdown file.
type Block struct {
	File string // slashes, from the root of the repository
	Line int    // of the fence that opens it
	Lang string // the first word after the fence
	Text string // with a newline at the end of every line
	Mark string // what the mark before it names; empty if there is none

	from, to int // where its text is in the file's
}

// Where returns file:line.
func (b Block) Where() string { return fmt.Sprintf("%s:%d", b.File, b.Line) }

var (
	block = regexp.MustCompile("(?ms)^(?:<!-- snippet: (\\S+) -->\n)?( {0,3}```)[ \t]*([^` \n]*)[^`\n]*\n(.*?)^ {0,3}``` *$")
	loose = regexp.MustCompile("(?m)^(?:<!-- snippet: | {0,3}```)")
)

// Parse returns the blocks of a Markdown text, and an error for a mark without
// a block after it, or a fence that is never closed.
func Parse(file, text string) (all []Block, err error) {
	for _, m := range block.FindAllStringSubmatchIndex(text, -1) {
		b := Block{File: file, Line: 1 + strings.Count(text[:m[4]], "\n"), Lang: text[m[6]:m[7]], Text: text[m[8]:m[9]], from: m[8], to: m[9]}
		if m[2] >= 0 {
			b.Mark = text[m[2]:m[3]]
		}
		all = append(all, b)
	}
	if rest := prose(text); loose.MatchString(rest) {
		line := 1 + strings.Count(rest[:loose.FindStringIndex(rest)[0]], "\n")
		return nil, fmt.Errorf("%s:%d: a mark is not right before a block, or a block is never closed", file, line)
	}
	return all, nil
}

// prose is a Markdown text with its blocks empty.
func prose(text string) string {
	return block.ReplaceAllStringFunc(text, func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) })
}

// Pages returns the texts of the Markdown files under root, by their paths from
// there, with slashes.
func Pages(root string) (map[string]string, error) {
	pages := map[string]string{}
	tree := os.DirFS(root)
	err := fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{".git", "testdata", "node_modules", "build", "bin"}, d.Name()) {
			return fs.SkipDir
		}
		if !d.IsDir() && filepath.Ext(path) == ".md" {
			var text []byte
			text, err = fs.ReadFile(tree, path)
			pages[path] = string(text)
		}
		return err
	})
	return pages, err
}

// Blocks returns the blocks of all Markdown files under root.
func Blocks(root string) (all []Block, err error) {
	pages, err := Pages(root)
	for _, file := range slices.Sorted(maps.Keys(pages)) {
		blocks, wrong := Parse(file, pages[file])
		all, err = append(all, blocks...), errors.Join(err, wrong)
	}
	return all, err
}
