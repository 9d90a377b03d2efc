package sqlite

import (
	"runtime"
	"strings"
	"testing"
)

func TestTheStateFolderIsTheSystemsOwn(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths below are not absolute here")
	}
	for _, c := range []struct {
		goos string
		env  map[string]string
		want string
	}{
		{"linux", map[string]string{"HOME": "/home/me"}, "/home/me/.local/state"},
		{"linux", map[string]string{"HOME": "/home/me", "XDG_STATE_HOME": "/state"}, "/state"},
		{"linux", map[string]string{"HOME": "/home/me", "XDG_STATE_HOME": "state"}, "/home/me/.local/state"},
		{"freebsd", map[string]string{"HOME": "/home/me"}, "/home/me/.local/state"},
		{"darwin", map[string]string{"HOME": "/Users/me", "XDG_STATE_HOME": "/state"}, "/Users/me/Library/Application Support"},
		{"windows", map[string]string{"LocalAppData": "/AppData/Local", "HOME": "/home/me"}, "/AppData/Local"},
		{"linux", map[string]string{"HOME": "/home/me", "REDLATCH_STATE_DIR": "/elsewhere"}, "/elsewhere"},
		{"windows", map[string]string{"REDLATCH_STATE_DIR": "/elsewhere"}, "/elsewhere"},
	} {
		got, err := stateDir(c.goos, func(k string) string { return c.env[k] })
		if err != nil || got != c.want {
			t.Errorf("%s with %v: %q, %v, want %q", c.goos, c.env, got, err, c.want)
		}
	}
}

func TestNoStateFolderIsExplained(t *testing.T) {
	for goos, variable := range map[string]string{"linux": "HOME", "darwin": "HOME", "windows": "LocalAppData"} {
		_, err := stateDir(goos, func(string) string { return "" })
		if err == nil || !strings.Contains(err.Error(), variable) || !strings.Contains(err.Error(), "REDLATCH_STATE_DIR") {
			t.Errorf("%s: %v, want an error that names %s", goos, err, variable)
		}
	}
}
