package redis

import (
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/check"
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
	check.Must(t, err)
	m := regexp.MustCompile(`local leap = (\d+) `).FindSubmatch(text)
	if m == nil || string(m[1]) != strconv.Itoa(node.TokenLeap) {
		t.Errorf("the scripts have %q, and node.TokenLeap is %d", m, node.TokenLeap)
	}
}

func TestScriptsHaveTheDefaultsThatAreNotSent(t *testing.T) {
	for script, defaults := range map[string]*[10]string{"acquire": &acquireDefaults, "extend": &extendDefaults, "release": &releaseDefaults} {
		text := read("lua/" + script + ".lua")
		for i, value := range defaults {
			if want := "ARGV[" + strconv.Itoa(i+1) + "] or '" + value + "'"; value != "" && !strings.Contains(text, want) {
				t.Errorf("%s.lua has no %s", script, want)
			}
		}
	}
}

func TestScriptsSayWhatTheyReadAndAnswer(t *testing.T) {
	files, err := fs.Glob(lua, "lua/*.lua")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	included := map[string]bool{}
	// parts returns the comment that a file begins with, and the rest.
	parts := func(file string) (header, body string) {
		for line := range strings.Lines(read(file)) {
			switch helper, found := strings.CutPrefix(strings.TrimSpace(line), include); {
			case found:
				included[path.Join("lua/lib", helper+".lua")] = true
			case body == "" && strings.HasPrefix(line, "--"):
				header += line
			default:
				body += line
			}
		}
		return header, body
	}
	for _, file := range files {
		header, body := parts(file)
		if !strings.Contains(header, "Reply:") {
			t.Errorf("%s does not say what it answers", file)
		}
		for _, name := range used.FindAllString(body, -1) {
			if !strings.Contains(header, name+" ") {
				t.Errorf("%s uses %s, and its header does not say what that is", file, name)
			}
		}
		for _, m := range answered.FindAllStringSubmatch(body, -1) {
			if !strings.Contains(header, "--   "+m[1]) {
				t.Errorf("%s answers %s, and its header does not say when", file, m[1])
			}
		}
		if name := strings.TrimSuffix(filepath.Base(file), ".lua"); strings.Contains(load(name).Source, "\n"+include) {
			t.Errorf("%s includes what is not there", file)
		}
	}
	helpers, err := fs.Glob(lua, "lua/lib/*.lua")
	check.Must(t, err)
	for _, h := range helpers {
		parts(h)
	}
	for _, h := range helpers {
		if !included[h] {
			t.Errorf("no script includes %s", h)
		}
	}
}
