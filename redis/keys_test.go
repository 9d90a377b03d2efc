package redis

import (
	"strings"
	"testing"

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
