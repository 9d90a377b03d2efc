package main

import (
	"io"
	"strings"
	"testing"
)

func TestAddressesThatAreNearlyRightAreAnsweredWithTheRightForm(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"ls", "--nodes", "localhost:6379"}, `address 1 of the nodes is "localhost:6379": it has no scheme; write redis://localhost:6379, or rediss://localhost:6379 with TLS`},
		{[]string{"ls", "--nodes", "redis://a,redis:6379"}, "must be redis://redis:6379"},
		{[]string{"ls", "--nodes", "redis://a redis://b"}, "separate addresses by a comma"},
		{[]string{"ls", "--nodes", "localhost:1 localhost:2"}, "separate addresses by a comma"},
		{[]string{"run", "--nodes", "redis://a", "redis://b", "job", "--", "true"}, "separate addresses by a comma"},
		{[]string{"lock", "--nodes", "redis://a", "redis://b", "job"}, "separate addresses by a comma"},
		{[]string{"init", "--nodes", "redis://a", "redis://b"}, "separate addresses by a comma"},
		{[]string{"ls", "--nodes", "/var/lib/locks.db"}, "redlatch help nodes"},
	} {
		var stderr strings.Builder
		say := &reporter{w: &stderr}
		root := newRoot(say)
		root.SetArgs(c.args)
		root.SetOut(io.Discard)
		end := outcomeOf(root.Execute())
		say.end(end)
		if end.code != exitUsage || !strings.Contains(stderr.String(), c.says) {
			t.Errorf("%q: exit %d, %swant %q", c.args, end.code, stderr.String(), c.says)
		}
	}
}
