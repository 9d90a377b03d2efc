package snippets

import (
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

	from, to int // which lines of the file its text is, counted from 0
}

// Where returns file:line.
func (b Block) Where() string { return fmt.Sprintf("%s:%d", b.File, b.Line) }

var (
	fence = regexp.MustCompile("^( {0,3})(`{3,}|~{3,})(.*)$")
	mark  = regexp.MustCompile(`^\s*<!-- snippet: (\S+) -->\s*$`)
)

// Parse returns the blocks of a Markdown text, and an error for a mark without
// a block after it, or a fence that is never closed.
func Parse(file, text string) ([]Block, error) {
	var all []Block
	lines := strings.SplitAfter(text, "\n")
	marked, markLine := "", 0
	for i := 0; i < len(lines); i++ {
		line := strings.TrimRight(lines[i], "\r\n")
		open := fence.FindStringSubmatch(line)
		if open == nil {
			if marked != "" {
				return nil, fmt.Errorf("%s:%d: the mark of %s is not right before a block", file, markLine, marked)
			}
			if m := mark.FindStringSubmatch(line); m != nil {
				marked, markLine = m[1], i+1
			}
			continue
		}
		end := i + 1
		for ; end < len(lines); end++ {
			c := fence.FindStringSubmatch(strings.TrimRight(lines[end], "\r\n"))
			if c != nil && strings.HasPrefix(c[2], open[2]) && strings.TrimSpace(c[3]) == "" {
				break
			}
		}
		if end == len(lines) {
			return nil, fmt.Errorf("%s:%d: the block is never closed", file, i+1)
		}
		lang, _, _ := strings.Cut(strings.TrimSpace(open[3]), " ")
		all = append(all, Block{File: file, Line: i + 1, Lang: lang, Text: strings.Join(lines[i+1:end], ""), Mark: marked, from: i + 1, to: end})
		marked, i = "", end
	}
	if marked != "" {
		return nil, fmt.Errorf("%s:%d: the mark of %s is not right before a block", file, markLine, marked)
	}
	return all, nil
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
func Blocks(root string) ([]Block, error) {
	pages, err := Pages(root)
	if err != nil {
		return nil, err
	}
	var all []Block
	for _, file := range slices.Sorted(maps.Keys(pages)) {
		blocks, err := Parse(file, pages[file])
		if err != nil {
			return nil, err
		}
		all = append(all, blocks...)
	}
	return all, nil
}
