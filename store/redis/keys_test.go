package redis

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/node"
)

// word returns at most so many runes of an alphabet, at random.
func word(alphabet string, most int) string {
	runes, all := []rune(alphabet), make([]rune, 1+rand.IntN(most))
	for i := range all {
		all[i] = runes[rand.IntN(len(runes))]
	}
	return string(all)
}

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
	check := func(t testing.TB, name string) {
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
		t.Run(name, func(t *testing.T) { check(t, name) })
	}
	for range 200 {
		check(t, word("a{}é:", 12))
	}
}

func TestSideKeysOfDifferentNamesDiffer(t *testing.T) {
	for range 5000 {
		a, b := word("a{}0", 6), word("a{}0", 6)
		if a != b && sideKey("fence", a) == sideKey("fence", b) {
			t.Fatalf("%q and %q share the fence %q", a, b, sideKey("fence", a))
		}
	}
}

func TestSideKeysTellTheirName(t *testing.T) {
	check := func(t testing.TB, kind, name string) {
		if k, n, ok := nameOf(sideKey(kind, name)); !ok || k != kind || n != name {
			t.Errorf("%q, the %s of %q, is read as the %s of %q (%v)", sideKey(kind, name), kind, name, k, n, ok)
		}
	}
	for _, name := range []string{"a", ":", "::a", ":{a}", "a}b", "{}x", "{}", "}{", "{a}", "{a}{b}", "a{b", "a{b}c}", "{{a}}", "}", "{", "a}b{c}", "{}{a}", "fence:{a}", "redlatch:1:fence:{a}", "\xff}"} {
		check(t, "fence", name)
		check(t, "queue", name)
	}
	for range 200 {
		check(t, "fence", word("a{}é:0", 12))
		check(t, "queue", word("\x00\n !*:;[]{}~azAZ09\u007fé日\u2028\ufffd\U0001f512", 40))
	}
	// A key that sideKey did not make belongs to no name.
	for _, key := range []string{"", "a", "redlatch:1:", "redlatch:1:fence", "redlatch:1:fence:a", "redlatch:1:fence:{a", "redlatch:1:fence::a", "redlatch:1:fence:{a}b", "redlatch:1:fence:{zz}a}b", "redlatch:2:fence:{a}"} {
		if _, name, ok := nameOf(key); ok {
			t.Errorf("%q is taken for a side key of %q", key, name)
		}
	}
}
