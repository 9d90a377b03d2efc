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
	nodes := these(server)
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
		nodes.run(t, 0, "run "+c.name+" -- true")
		server.Do(c.set...)

		want := `redlatch: "` + c.name + `" is held by ` + c.holder + " with no expiry: its owner must delete it; or use " + c.way + "\n"
		if s := nodes.run(t, exitHeld, "run -n "+c.name+" -- true"); s.stderr != want {
			t.Errorf("%s: run -n: %swant %s", c.name, s.stderr, want)
		}
		nodes.run(t, exitHeld, "lock -w 50ms "+c.name).err(c.way + ", after a wait of").never("longer -w")
		nodes.run(t, exitHeld, "run -n --json "+c.name+" -- true").err(c.json+`,"expires_in_ms":null`, `"event":"held"`)

		text := strings.TrimPrefix(strings.TrimSuffix(c.holder, ")"), "a foreign format (")
		text = strings.Replace(text, "another client (", "another client, ", 1)
		nodes.run(t, 0, "show "+c.name).out(text + ", with no expiry")
		list := nodes.run(t, 0, "ls "+c.name)
		list.stdout = lineOf(list.stdout, c.name)
		list.out("held", text, "for ever")

		server.Do("PEXPIRE", c.name, "60000")
		nodes.run(t, exitHeld, "run -n "+c.name+" -- true").err(c.holder+"; it expires in ", "give -w 30s instead of -n").never("break")
		server.Do("PERSIST", c.name)

		remove := "break --yes " + c.name
		if strings.HasSuffix(c.way, "--foreign") {
			nodes.run(t, exitHeld, remove).err("--foreign")
			if server.Do("EXISTS", c.name) != "1" {
				t.Errorf("%s: without --foreign it is removed", c.name)
			}
			remove += " --foreign"
		}
		nodes.run(t, 0, remove)
		if server.Do("EXISTS", c.name) != "0" {
			t.Errorf("%s: what the error says to do has not removed it", c.name)
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
