//go:build unix

package scripts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestWhatFailsEndsRed runs test.sh on a module made for the purpose.
func TestWhatFailsEndsRed(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles test programs, one with the race detector")
	}
	script, err := filepath.Abs("test.sh")
	must(t, err)
	const race = "func TestMain(m *testing.M) { m.Run(); n, c := 0, make(chan int); go func() { n++; c <- 1 }(); n++; <-c }"
	for what, c := range map[string]struct{ test, args, says string }{
		"a test, in its first run alone": {`if os.Mkdir("ran", 0o700) == nil { t.Error("wrong") }`, "./a -- ./fine", `(?s)wrong.*=== Failed.*TestA.*wrong.*DONE 2 tests, 1 failure`},
		"a build":                        {`missing()`, "./fine -- ./a", `(?s)=== Errors.*undefined: missing.*DONE`},
		"a package that is not there":    {``, "./fine -- ./b", `b: directory not found`},
		"a panic":                        {`panic("oh")`, "./fine -- ./a", `(?s)=== Failed.*TestA.*panic: oh`},
		"a time-out":                     {`time.Sleep(time.Minute)`, "./fine -- -timeout=1s ./a", `(?s)=== Failed.*timed out after 1s.*FAIL: a TestA`},
		"a race after the last test":     {"}\n" + race + "\nfunc init() {", "./fine -- -race ./a", `(?s)=== Failed.*a  .*WARNING: DATA RACE`},
		"no test":                        {``, "-run=None ./a -- -run=None ./fine", `(?s)DONE 0 tests.*no test passed`},
		"nothing":                        {`t.Log("too late to tell; running it again: slow"); t.Run("b", func(t *testing.T) { t.Skip("why") })`, "./a", `(?s)ran again:\nTestA: .*slow\n.*=== Skipped.*TestA/b.*why.*DONE`},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(script, strings.Fields(c.args)...)
			cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "GOFLAGS=-vet=off")
			for path, text := range map[string]string{
				"go.mod":            "module example.com/x\n\ngo 1.25\n",
				"fine/fine_test.go": "package fine\n\nimport \"testing\"\n\nfunc TestFine(t *testing.T) {}\n",
				"a/a_test.go":       "package a\n\nimport (\n\"os\"\n\"testing\"\n\"time\"\n)\n\nvar _, _ = os.Exit, time.Now\n\nfunc TestA(t *testing.T) {\n" + c.test + "\n}\n",
			} {
				path = filepath.Join(cmd.Dir, path)
				must(t, os.MkdirAll(filepath.Dir(path), 0o700))
				must(t, os.WriteFile(path, []byte(text), 0o600))
			}
			out, err := cmd.CombinedOutput()
			if (err != nil) != (what != "nothing") || !regexp.MustCompile(c.says).Match(out) {
				t.Errorf("%v, and the output is\n%s", err, out)
			}
		})
	}
}
