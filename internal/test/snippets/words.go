package snippets

import (
	"fmt"
	"regexp"
	"strings"
)

// words are the words that the documentation does not use, each with its
// replacement. CONTRIBUTING.md has the table.
var words = compile([][2]string{
	{`told|tells?`, "is notified, reports, returns"},
	{`stands?|stood`, "is held, is valid"},
	{`(sits?|sat|sitting) out`, "is quarantined"},
	{`(takes?|took|taken|taking) (no )?part`, "is back in service"},
	{`(gives?|gave|given|giving) way|(leaves?|left|leaving) (\w+ )?to another`, "yields"},
	{`(takes?|took|taken|taking) (it |them |that )?back`, "undoes, cleans up"},
	{`under way|on (its|their|the) way`, "in flight"},
	{`carr(y|ies|ied|ying) (it |them |that )?out`, "executed, applied"},
	{`strangers?|plain (Redlock )?(clients?|holders?)`, "foreign client"},
	{`in line|(its|their|my|our|whose|the) turn`, "local queue, node queue, notification"},
	{`lists? of (the )?nodes|node lists?|(another|other|former|old|new) lists?|changes? of (the )?list`, "membership, membership change"},
	{`bounds`, "cluster parameters, limits"},
	{`whoever`, "say who"},
	{`long yet`, "the remaining time"},
	{`(comes?|came) to nothing|in vain`, "fails, is refused"},
	{`the first plan|the plan had`, "what is, not what was"},
})

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
		wrong = append(wrong, find(words, fmt.Sprintf("%s:%d", file, i+1), line)...)
	}
	return wrong
}
