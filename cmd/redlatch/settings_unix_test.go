//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

func TestPasswordsComeFromFileOrEnvironmentAndAreNotShown(t *testing.T) {
	t.Parallel()
	const secret = `p/w@?#:,%20 "x`
	server := servertest.Redis(t, 1, "--requirepass", secret)[0]
	file := filepath.Join(t.TempDir(), "password")
	must(t, os.WriteFile(file, []byte(secret+"\r\nsecond line\n"), 0o600))
	config := filepath.Join(t.TempDir(), "config")
	must(t, os.WriteFile(config, []byte("nodes = "+server.URL()+"\npassword-file = "+file+"\n"), 0o644))
	stale := config + "-stale"
	must(t, os.WriteFile(stale, []byte("nodes = "+server.URL()+"\npassword-file = "+file+"-missing\n"), 0o644))
	for _, c := range []struct {
		name string
		env  []string
		args []string
		code int
	}{
		{"none", nil, []string{"--nodes", server.URL()}, exitDenied},
		{"wrong", []string{"REDLATCH_PASSWORD=hunter2"}, []string{"--nodes", server.URL()}, exitDenied},
		{"environment", []string{"REDLATCH_PASSWORD=" + secret}, []string{"--nodes", server.URL()}, 0},
		{"file", nil, []string{"--nodes", server.URL(), "--password-file", file}, 0},
		{"file before environment", []string{"REDLATCH_PASSWORD=hunter2"}, []string{"--nodes", server.URL(), "--password-file", file}, 0},
		{"settings file", []string{"REDLATCH_CONFIG=" + config}, nil, 0},
		{"environment before settings file", []string{"REDLATCH_CONFIG=" + stale, "REDLATCH_PASSWORD=" + secret}, nil, 0},
		{"file before environment and settings file", []string{"REDLATCH_CONFIG=" + stale, "REDLATCH_PASSWORD=hunter2"}, []string{"--password-file", file}, 0},
		{"own password first", []string{"REDLATCH_PASSWORD=" + secret}, []string{"--nodes", strings.Replace(server.URL(), "://", "://:hunter2@", 1)}, exitDenied},
		{"user without a password", []string{"REDLATCH_PASSWORD=" + secret}, []string{"--nodes", strings.Replace(server.URL(), "://", "://default@", 1)}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command("redlatch", append(append([]string{"run", "-n"}, c.args...), "job", "--", "true")...)
			cmd.Env = append(os.Environ(), c.env...)
			out, err := cmd.CombinedOutput()
			if code := exitCode(t, err); code != c.code {
				t.Errorf("exit %d, want %d: %s", code, c.code, out)
			}
			for _, word := range []string{"hunter2", secret, "p%2Fw", `p/w`} {
				if strings.Contains(string(out), word) {
					t.Errorf("the output shows a password: %s", out)
				}
			}
		})
	}
}

func TestEverySettingIsAFlag(t *testing.T) {
	run := newRun(&reporter{})
	for _, name := range settings {
		if run.Flags().Lookup(name) == nil {
			t.Errorf("run has no flag --%s", name)
		}
	}
}
