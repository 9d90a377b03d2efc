package redis

import (
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/node"
)

var (
	// used are the keys and arguments that a script reads.
	used = regexp.MustCompile(`(KEYS|ARGV)\[\d+\]`)
	// answered are the statuses that it returns.
	answered = regexp.MustCompile(`(?:return \{|= \{|\b(?:refused|reply)\()'([a-z]+)'`)
)

func TestScriptsLetATokenLeapAsFarAsTheContractDoes(t *testing.T) {
	text, err := lua.ReadFile("lua/lib/fence.lua")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`local leap = (\d+) `).FindSubmatch(text)
	if m == nil || string(m[1]) != strconv.Itoa(node.TokenLeap) {
		t.Errorf("the scripts have %q, and node.TokenLeap is %d", m, node.TokenLeap)
	}
}

func TestScriptsSayWhatTheyReadAndAnswer(t *testing.T) {
	files, err := fs.Glob(lua, "lua/*.lua")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	included := map[string]bool{}
	for _, file := range files {
		text, err := lua.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var header, body strings.Builder
		for line := range strings.Lines(string(text)) {
			switch helper, found := strings.CutPrefix(strings.TrimSpace(line), include); {
			case found:
				included["lua/lib/"+helper+".lua"] = true
			case body.Len() == 0 && strings.HasPrefix(line, "--"):
				header.WriteString(line)
			default:
				body.WriteString(line)
			}
		}
		if !strings.Contains(header.String(), "Reply:") {
			t.Errorf("%s does not say what it answers", file)
		}
		for _, name := range used.FindAllString(body.String(), -1) {
			if !strings.Contains(header.String(), name+" ") {
				t.Errorf("%s uses %s, and its header does not say what that is", file, name)
			}
		}
		for _, m := range answered.FindAllStringSubmatch(body.String(), -1) {
			if !strings.Contains(header.String(), "--   "+m[1]) {
				t.Errorf("%s answers %s, and its header does not say when", file, m[1])
			}
		}
	}
	helpers, err := fs.Glob(lua, "lua/lib/*.lua")
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range helpers {
		if !included[h] {
			t.Errorf("no script includes %s", h)
		}
	}
	for _, s := range []*Script{acquireScript, releaseScript, markScript} {
		if strings.Contains(s.Source, "#include") {
			t.Errorf("%s includes what is not there", s.Name)
		}
	}
}
