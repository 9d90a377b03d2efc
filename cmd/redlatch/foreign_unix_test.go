//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

// TestForeignFormatsAreShownAsSuch sets keys under the name of a lock that are
// no lock of ours, and runs every verb that meets them.
func TestForeignFormatsAreShownAsSuch(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t, 1)[0]
	shown := strings.Repeat("v", 64)
	for _, c := range []struct {
		name, holder, json, way string
		set                     []string
	}{
		{"hash", "a foreign format (a key of type hash)", `"owner":"hash","kind":"foreign"`, "redlatch break --foreign", []string{"HSET", "hash", "uuid:1", "1"}},
		{"zset", "a foreign format (a key of type zset)", `"owner":"zset","kind":"foreign"`, "redlatch break --foreign", []string{"ZADD", "zset", "1", "a"}},
		{"plain", `another client ("value")`, `"owner":"\"value\"","kind":"plain"`, "redlatch break", []string{"SET", "plain", "value"}},
		{"long", `another client ("` + shown + `"…)`, `"owner":"\"` + shown + `\"…","kind":"plain"`, "redlatch break", []string{"SET", "long", shown + "more"}},
	} {
		// It was a lock of ours before, so that ls knows the name.
		if code, _, stderr := command(t, "run", "--nodes", server.URL(), c.name, "--", "true"); code != 0 {
			t.Fatalf("%s: run: exit %d, %s", c.name, code, stderr)
		}
		server.Do(c.set...)

		code, _, stderr := command(t, "run", "-n", "--nodes", server.URL(), c.name, "--", "true")
		want := `redlatch: "` + c.name + `" is held by ` + c.holder + " with no expiry: its owner must delete it; or use " + c.way + "\n"
		if code != exitHeld || stderr != want {
			t.Errorf("%s: run -n: exit %d, %swant %s", c.name, code, stderr, want)
		}
		code, _, stderr = command(t, "lock", "-w", "50ms", "--nodes", server.URL(), c.name)
		if code != exitHeld || !strings.Contains(stderr, c.way+", after a wait of") || strings.Contains(stderr, "longer -w") {
			t.Errorf("%s: lock -w: exit %d, %s", c.name, code, stderr)
		}
		code, _, stderr = command(t, "run", "-n", "--json", "--nodes", server.URL(), c.name, "--", "true")
		if code != exitHeld || !strings.Contains(stderr, c.json+`,"expires_in_ms":null`) || !strings.Contains(stderr, `"event":"held"`) {
			t.Errorf("%s: run -n --json: exit %d, %s", c.name, code, stderr)
		}

		text := strings.TrimPrefix(strings.TrimSuffix(c.holder, ")"), "a foreign format (")
		text = strings.Replace(text, "another client (", "another client, ", 1)
		code, stdout, _ := command(t, "show", "--nodes", server.URL(), c.name)
		if code != 0 || !strings.Contains(stdout, text+", with no expiry") {
			t.Errorf("%s: show: exit %d, %swant %s, with no expiry", c.name, code, stdout, text)
		}
		code, stdout, _ = command(t, "ls", "--nodes", server.URL())
		if line := lineOf(stdout, c.name); code != 0 || !strings.Contains(line, "held") || !strings.Contains(line, text) || !strings.Contains(line, "for ever") {
			t.Errorf("%s: ls: exit %d, %s", c.name, code, stdout)
		}

		server.Do("PEXPIRE", c.name, "60000")
		code, _, stderr = command(t, "run", "-n", "--nodes", server.URL(), c.name, "--", "true")
		if code != exitHeld || !strings.Contains(stderr, c.holder+"; it expires in ") || !strings.Contains(stderr, "give -w 30s instead of -n") || strings.Contains(stderr, "break") {
			t.Errorf("%s: run -n of a key that runs out: exit %d, %s", c.name, code, stderr)
		}
		server.Do("PERSIST", c.name)

		args := []string{"break", "--yes", "--nodes", server.URL(), c.name}
		if strings.HasSuffix(c.way, "--foreign") {
			if code, _, stderr := command(t, args...); code != exitHeld || !strings.Contains(stderr, "--foreign") || server.Do("EXISTS", c.name) != "1" {
				t.Errorf("%s: break: exit %d, %s", c.name, code, stderr)
			}
			args = append(args, "--foreign")
		}
		if code, stdout, stderr := command(t, args...); code != 0 || server.Do("EXISTS", c.name) != "0" {
			t.Errorf("%s: what the error says to do: exit %d, %s%s", c.name, code, stdout, stderr)
		}
	}
}

// lineOf returns the line that begins with a name.
func lineOf(text, name string) string {
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, name+" ") {
			return line
		}
	}
	return ""
}
