//go:build unix

package kubernetes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/deploytest"
)

// composition is the part of the Compose format that the example uses. Any
// other field is an error.
type composition struct {
	Server   any            `json:"x-server"`
	Nodes    any            `json:"x-nodes"`
	Volumes  map[string]any `json:"volumes"`
	Services map[string]struct {
		Image           string            `json:"image"`
		Build           string            `json:"build"`
		Entrypoint      []string          `json:"entrypoint"`
		Command         any               `json:"command"` // a line, or words
		Environment     map[string]string `json:"environment"`
		Volumes         []string          `json:"volumes"`
		DependsOn       any               `json:"depends_on"`
		Restart         string            `json:"restart"`
		StopGracePeriod string            `json:"stop_grace_period"`
	} `json:"services"`
}

// wordsOf are the words of a command, which is a line without quotes but for an
// empty word, or already words.
func wordsOf(command any) []string {
	var all []string
	switch c := command.(type) {
	case string:
		for _, w := range strings.Fields(c) {
			if w == `""` {
				w = ""
			}
			all = append(all, w)
		}
	case []any:
		for _, w := range c {
			all = append(all, w.(string))
		}
	}
	return all
}

func TestCompositionRunsWhatItSays(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../compose/compose.yaml")
	check.Must(t, err)
	var c composition
	check.Must(t, strictly(text, &c))
	program := deploytest.Program(t)
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	check.Must(t, os.Mkdir(bin, 0o755))
	if code, out := (deploytest.Command{Args: []string{program, "install", bin}}).Run(t); code != 0 {
		t.Fatal(out)
	}
	app, err := filepath.Abs("../compose")
	check.Must(t, err)
	replaced := []string{"/app", app}
	for _, host := range []string{"a", "b", "c"} {
		server := c.Services[host]
		if len(server.Volumes) != 1 || !strings.HasPrefix(server.Volumes[0], host+":/data") {
			t.Errorf("%s has the volumes %q", host, server.Volumes)
		}
		if _, ok := c.Volumes[host]; !ok {
			t.Errorf("there is no volume %s", host)
		}
		command := wordsOf(server.Command)
		if len(command) == 0 || command[0] != "redis-server" {
			t.Fatalf("%s is started with %q", host, command)
		}
		data := filepath.Join(dir, host)
		check.Must(t, os.Mkdir(data, 0o700))
		replaced = append(replaced, "//"+host+":6379", "//"+deploytest.Serve(t, append(command[1:], "--dir", data)...))
	}
	replace := strings.NewReplacer(replaced...)
	command := func(service string) deploytest.Command {
		s := c.Services[service]
		cmd := deploytest.Command{Dir: dir, Env: []string{"PATH=" + bin + ":" + os.Getenv("PATH")}}
		for _, w := range append(s.Entrypoint, wordsOf(s.Command)...) {
			cmd.Args = append(cmd.Args, replace.Replace(w))
		}
		if cmd.Args[0] == "/usr/bin/redlatch" || cmd.Args[0] == "redlatch" {
			cmd.Args[0] = filepath.Join(bin, "redlatch")
		}
		for name, value := range s.Environment {
			cmd.Env = append(cmd.Env, name+"="+replace.Replace(value))
		}
		return cmd
	}
	deploytest.DeclareNew(t, command("init"))
	if code, out := command("report").Run(t); code != 0 || !strings.Contains(out, "report, with the token 1") || !strings.Contains(out, `"event":"released"`) {
		t.Errorf("report: exit %d, %s", code, out)
	}
	// A second container, while the name is kept: it does not run the job again.
	if code, out := command("report").Run(t); code != 75 || strings.Contains(out, "with the token") {
		t.Errorf("the second report: exit %d, %s", code, out)
	}
}

// TestImageOfTheJobGetsTheProgram from where the files of Kubernetes get it.
func TestImageOfTheJobGetsTheProgram(t *testing.T) {
	text, err := os.ReadFile("../compose/Dockerfile")
	check.Must(t, err)
	var copied []string
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "COPY" {
			copied = append(copied, strings.Join(words[1:], " "))
		}
	}
	if want := "--from=redlatch /usr/bin/redlatch /usr/local/bin/redlatch|report /app/report"; strings.Join(copied, "|") != want {
		t.Errorf("the image copies %q, want %s", copied, want)
	}
	if info, err := os.Stat("../compose/report"); err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("the job cannot be run: %v", err)
	}
}
