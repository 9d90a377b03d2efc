package snippets

import "testing"

// otherWords are the pages that speak of earlier versions.
var otherWords = []string{"CHANGELOG.md"}

func TestDocumentationUsesTheWordsOfTheTrade(t *testing.T) {
	all := pages(t)
	for _, file := range otherWords {
		if all[file] == "" {
			t.Errorf("%s is left out, and is not there", file)
		}
		delete(all, file)
	}
	for file, text := range all {
		for _, err := range CheckWords(file, text) {
			t.Error(err)
		}
	}
}

func TestWordsOfAPrivateLanguageAreFound(t *testing.T) {
	for text, want := range map[string]int{
		"Loss is told in time.":                                   1,
		"Whoever holds it, for how long yet.":                     2,
		"The lock stands on two nodes; the third sits out.":       2,
		"It gives way, and takes them back.":                      2,
		"It was carried out while the release was under way.":     2,
		"Strangers and plain clients stand in line.":              4,
		"A change of the list with other bounds.":                 2,
		"It asks in vain, and is told [why](list-of-nodes.md).":   2,
		"`node sits out` is what the log says.":                   0,
		"```text\nredlatch: 2nd in line, told by whoever\n```":    0,
		"It is held, and \"a yield is carried out once\".":        0,
		"It understands the standard, and lists the nodes there.": 0,
	} {
		if got := CheckWords("a.md", text); len(got) != want {
			t.Errorf("%q: found %v, want %d", text, got, want)
		}
	}
}
