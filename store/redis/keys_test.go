package redis

import (
	"strings"
	"testing"

	"github.com/redlatch/redlatch/node"
	"pgregory.net/rapid"
)

func TestSlotsAreThoseOfRedisCluster(t *testing.T) {
	// From the cluster specification, and as CLUSTER KEYSLOT answers.
	for key, want := range map[string]int{
		"123456789": 12739, "foo": 12182, "foo{}{bar}": 8363, "{user1000}.following": 3443, "a{b": slotOf("{a{b}"),
	} {
		if got := slotOf(key); got != want {
			t.Errorf("slot of %q is %d, want %d", key, got, want)
		}
	}
}

func TestSideKeysShareTheSlotOfTheirName(t *testing.T) {
	check := func(t rapid.TB, name string) {
		fence := sideKey("fence", name)
		if slotOf(fence) != slotOf(name) {
			t.Errorf("%q is in slot %d, its fence %q in %d", name, slotOf(name), fence, slotOf(fence))
		}
		if !strings.HasPrefix(fence, reserved) || !strings.Contains(fence, name) {
			t.Errorf("the fence of %q is %q", name, fence)
		}
		if got, want := textsOf(&node.Request{Name: name, Token: 7, Ticket: -8}, true), (requestTexts{
			fence, sideKey("turn", name), sideKey("queue", name), sideKey("group", name), sideKey("ended", name), "00000000000000000007", "a-8", "-8",
		}); got != want {
			t.Errorf("the texts of %q are %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"a", "a}b", "{}x", "{}", "}{", "{a}", "{a}{b}", "a{b", "a{b}c}", "{{a}}", "}", "{", "a}b{c}", "a}b{c", "{}{a}", "日本{}"} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { check(t, name) })
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		check(t, rapid.StringMatching(`[a{}é:]{1,12}`).Draw(t, "name"))
	})
}

func TestSideKeysOfDifferentNamesDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gen := rapid.StringMatching(`[a{}0]{1,6}`)
		a, b := gen.Draw(t, "a"), gen.Draw(t, "b")
		if a != b && sideKey("fence", a) == sideKey("fence", b) {
			t.Fatalf("%q and %q share the fence %q", a, b, sideKey("fence", a))
		}
	})
}

func TestSideKeysTellTheirName(t *testing.T) {
	check := func(t rapid.TB, kind, name string) {
		if k, n, ok := nameOf(sideKey(kind, name)); !ok || k != kind || n != name {
			t.Errorf("%q, the %s of %q, is read as the %s of %q (%v)", sideKey(kind, name), kind, name, k, n, ok)
		}
	}
	for _, name := range []string{"a", ":", "::a", ":{a}", "a}b", "{}x", "{}", "}{", "{a}", "{a}{b}", "a{b", "a{b}c}", "{{a}}", "}", "{", "a}b{c}", "{}{a}", "fence:{a}", "redlatch:1:fence:{a}", "\xff}"} {
		check(t, "fence", name)
		check(t, "queue", name)
	}
	rapid.Check(t, func(t *rapid.T) {
		check(t, "fence", rapid.StringMatching(`[a{}é:0]{1,12}`).Draw(t, "name"))
	})
	rapid.Check(t, func(t *rapid.T) { check(t, "queue", rapid.StringN(1, 40, -1).Draw(t, "name")) })
	// A key that sideKey did not make belongs to no name.
	for _, key := range []string{"", "a", "redlatch:1:", "redlatch:1:fence", "redlatch:1:fence:a", "redlatch:1:fence:{a", "redlatch:1:fence::a", "redlatch:1:fence:{a}b", "redlatch:1:fence:{zz}a}b", "redlatch:2:fence:{a}"} {
		if _, name, ok := nameOf(key); ok {
			t.Errorf("%q is taken for a side key of %q", key, name)
		}
	}
}
