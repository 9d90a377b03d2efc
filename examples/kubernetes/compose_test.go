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
		Command         []string          `json:"command"`
		Environment     map[string]string `json:"environment"`
		Volumes         []string          `json:"volumes"`
		DependsOn       any               `json:"depends_on"`
		Restart         string            `json:"restart"`
		StopGracePeriod string            `json:"stop_grace_period"`
	} `json:"services"`
}

func TestCompositionRunsWhatItSays(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../compose/compose.yaml")
	check.Must(t, err)
	var c composition
	check.Must(t, strictly(text, &c))
	program, dir := deploytest.Program(t), t.TempDir()
	app, err := filepath.Abs("../compose")
	check.Must(t, err)
	replaced := []string{"/app", app}
	for _, host := range []string{"a", "b", "c"} {
		server := c.Services[host]
		if _, ok := c.Volumes[host]; !ok || len(server.Volumes) != 1 || server.Volumes[0] != host+":/data" {
			t.Errorf("%s has the volumes %q of %v", host, server.Volumes, c.Volumes)
		}
		if server.Command[0] != "redis-server" {
			t.Fatalf("%s is started with %q", host, server.Command)
		}
		data := filepath.Join(dir, host)
		check.Must(t, os.Mkdir(data, 0o700))
		replaced = append(replaced, "//"+host+":6379", "//"+deploytest.Serve(t, append(server.Command[1:], "--dir", data)...))
	}
	replace := strings.NewReplacer(replaced...)
	command := func(service string) deploytest.Command {
		s := c.Services[service]
		cmd := deploytest.Command{Dir: dir}
		for _, w := range append(s.Entrypoint, s.Command...) {
			cmd.Args = append(cmd.Args, replace.Replace(w))
		}
		if cmd.Args[0] == "/usr/bin/redlatch" || cmd.Args[0] == "redlatch" {
			cmd.Args[0] = program
		}
		for name, value := range s.Environment {
			cmd.Env = append(cmd.Env, name+"="+replace.Replace(value))
		}
		return cmd
	}
	deploytest.DeclareNew(t, command("init"))
	if code, out := command("report").Run(t); code != 0 || !strings.Contains(out, "report, with the token 0") || !strings.Contains(out, `"event":"released"`) {
		t.Errorf("report: exit %d, %s", code, out)
	}
	// A second container, while the name is kept: it does not run the job again.
	if code, out := command("report").Run(t); code != 75 || strings.Contains(out, "with the token") {
		t.Errorf("the second report: exit %d, %s", code, out)
	}
}
