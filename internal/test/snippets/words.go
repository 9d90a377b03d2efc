package snippets

import (
	"fmt"
	"regexp"
	"strings"
)

// words are the words that the documentation does not use, each with its
// replacement. CONTRIBUTING.md has the table.
var words = []struct {
	form    *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?i)\b(told|tells?)\b`), "is notified, reports, returns"},
	{regexp.MustCompile(`(?i)\b(stands?|stood)\b`), "is held, is valid"},
	{regexp.MustCompile(`(?i)\b(sits?|sat|sitting) out\b`), "is quarantined"},
	{regexp.MustCompile(`(?i)\b(takes?|took|taken|taking) (no )?part\b`), "is back in service"},
	{regexp.MustCompile(`(?i)\b(gives?|gave|given|giving) way\b|\b(leaves?|left|leaving) (\w+ )?to another\b`), "yields"},
	{regexp.MustCompile(`(?i)\b(takes?|took|taken|taking) (it |them |that )?back\b`), "undoes, cleans up"},
	{regexp.MustCompile(`(?i)\bunder way\b|\bon (its|their|the) way\b`), "in flight"},
	{regexp.MustCompile(`(?i)\bcarr(y|ies|ied|ying) (it |them |that )?out\b`), "executed, applied"},
	{regexp.MustCompile(`(?i)\bstrangers?\b|\bplain (Redlock )?(clients?|holders?)\b`), "foreign client"},
	{regexp.MustCompile(`(?i)\bin line\b|\b(its|their|my|our|whose|the) turn\b`), "local queue, node queue, notification"},
	{regexp.MustCompile(`(?i)\blists? of (the )?nodes\b|\bnode lists?\b|\b(another|other|former|old|new) lists?\b|\bchanges? of (the )?list\b`), "membership, membership change"},
	{regexp.MustCompile(`(?i)\bbounds\b`), "cluster parameters, limits"},
	{regexp.MustCompile(`(?i)\bwhoever\b`), "say who"},
	{regexp.MustCompile(`(?i)\blong yet\b`), "the remaining time"},
	{regexp.MustCompile(`(?i)\b(comes?|came) to nothing\b|\bin vain\b`), "fails, is refused"},
	{regexp.MustCompile(`(?i)\bthe first plan\b|\bthe plan had\b`), "what is, not what was"},
}

// quoted are claims that programs print, as they print them. Other output is in
// code spans and blocks, which are not checked.
var quoted = []string{
	"a yield is carried out once",
	"a release that is to be carried out once is",
}

var linkTarget = regexp.MustCompile(`\]\([^()\s]+\)`)

// CheckWords returns an error for every word of a Markdown text that the
// documentation does not use.
func CheckWords(file, text string) []error {
	var wrong []error
	for i, line := range prose(text) {
		line = linkTarget.ReplaceAllString(code.ReplaceAllString(line, ""), "]")
		for _, q := range quoted {
			line = strings.ReplaceAll(line, `"`+q+`"`, "")
		}
		for _, w := range words {
			for _, found := range w.form.FindAllString(line, -1) {
				wrong = append(wrong, fmt.Errorf("%s:%d: %q: write: %s", file, i+1, found, w.instead))
			}
		}
	}
	return wrong
}
