package snippets

import (
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/check"
)

func TestEveryLinkOfTheDocumentationLeadsSomewhere(t *testing.T) {
	pages, err := Pages(root)
	check.Must(t, err)
	for file, text := range pages {
		for _, err := range CheckLinks(root, file, text) {
			t.Error(err)
		}
	}
}

func TestLinksThatLeadNowhereAreFound(t *testing.T) {
	const text = "# The title, `code`\n\n```text\n[not a link](nowhere)\n# no heading\n```\n"
	for target, says := range map[string]string{
		"#the-title-code":         "",
		"../README.md":            "",
		"../docs":                 "",
		"../README.md#try-it":     "",
		"https://example.com/#x":  "",
		"#no-heading":             "no heading no-heading",
		"none.md":                 "no such file",
		"../README.md#try-me":     "no heading try-me",
		"../../README.md#missing": "no such file",
	} {
		wrong := CheckLinks(root, "docs/a.md", text+"[here]("+target+")\n")
		switch {
		case says == "" && len(wrong) != 0:
			t.Errorf("%s: %v", target, wrong)
		case says != "" && (len(wrong) != 1 || !strings.Contains(wrong[0].Error(), says)):
			t.Errorf("%s: %v, want one error that says %q", target, wrong, says)
		}
	}
}
