package redis

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/redlatch/redlatch/node"
)

// presentable reports whether an error can be shown: it is one line of text,
// and short enough to read.
func presentable(err error) bool {
	text := err.Error()
	return len(text) < 1000 && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

func FuzzParseAddress(f *testing.F) {
	for _, text := range []string{
		"redis://u:p@a:1/2?x=y", "redis+sentinel://a+b/m/1", "rediss+cluster://[::1]:1+c", "redis://@@", "redis://u:pw@a/%",
		"redis+sentinel://u:p@a/m?sentinel_user=s&sentinel_password=t", "rediss://a?tls_server_name=b", "redis://a:65536", "redis://a#b", "redis://[::1%25x]",
		"redis://u:p%00w@a", "redis+sentinel://a/m%2Fn/1", "redis+sentinel://a/m%3Fn",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "tls_") && !strings.Contains(text, "tls_server_name") {
			return // it names files of this machine
		}
		a, err := ParseAddress(text)
		if err != nil {
			if bad, ok := errors.AsType[*node.ConfigError](err); !ok || bad.Field != "address" || !presentable(err) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if len(a.Hosts) == 0 || a.Database < 0 || a.Database > 65535 || (a.Kind == Sentinel) != (a.Master != "") || a.Kind == Single && len(a.Hosts) > 1 {
			t.Errorf("%q reads as %+v", text, a)
		}
		for _, h := range a.Hosts {
			if host, port, err := net.SplitHostPort(h); err != nil || host == "" || port == "" {
				t.Errorf("%q has the host %q", text, h)
			}
		}
		again, err := ParseAddress(a.String())
		if err != nil || again.String() != a.String() {
			t.Fatalf("%q reads as %q, and that as %v, %v", text, a, again, err)
		}
		if again.Password != "" || again.Username != "" || again.SentinelPassword != "" {
			t.Errorf("%q is shown as %q, with what is secret", text, a)
		}
		if again.Kind != a.Kind || again.Master != a.Master || again.Database != a.Database || strings.Join(again.Hosts, " ") != strings.Join(a.Hosts, " ") {
			t.Errorf("%q reads as %+v, and as it is shown as %+v", text, a, again)
		}
	})
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

// FuzzSideKeys tests names of locks of any bytes.
func FuzzSideKeys(f *testing.F) {
	for _, name := range []string{
		"a", "a}b", "{}x", "{}", "}{", "{a}", "{a}{b}", "a{b", "a{b}c}", "{{a}}", "a}b{c}", "a}b{c", "}", "{", "{}{a}", "日本{}", ":", "::a", ":{a}", "\xff}", "\x00", "fence:{a}", "redlatch:1:fence:{a}", "{\x00}",
		// No name has one of these as a side key.
		"redlatch:1:", "redlatch:1:fence", "redlatch:1:fence:a", "redlatch:1:fence:{a", "redlatch:1:fence::a", "redlatch:1:fence:{a}b", "redlatch:1:fence:{zz}a}b", "redlatch:2:fence:{a}",
	} {
		f.Add(name, "a")
	}
	f.Add("{a}", ":{a}")
	f.Fuzz(func(t *testing.T, name, other string) {
		if name == "" {
			return // no lock has this name
		}
		for _, kind := range []string{"fence", "queue", "turn"} {
			key := sideKey(kind, name)
			if slotOf(key) != slotOf(name) {
				t.Errorf("%q is in slot %d, its %s %q in %d", name, slotOf(name), kind, key, slotOf(key))
			}
			if !strings.HasPrefix(key, reserved) {
				t.Errorf("the %s of %q is %q", kind, name, key)
			}
			if k, n, ok := nameOf(key); !ok || k != kind || n != name {
				t.Errorf("%q, the %s of %q, is read as the %s of %q (%v)", key, kind, name, k, n, ok)
			}
			if name != other && key == sideKey(kind, other) {
				t.Errorf("%q and %q share the %s %q", name, other, kind, key)
			}
		}
		if got, want := textsOf(&node.Request{Name: name, Fencing: node.Fencing{Token: 7}, Waiting: node.Waiting{Ticket: -8}}, true), (requestTexts{
			sideKey("fence", name), sideKey("turn", name), sideKey("queue", name), sideKey("group", name), sideKey("ended", name), "00000000000000000007", "a-8", "-8",
		}); got != want {
			t.Errorf("the texts of %q are %q, want %q", name, got, want)
		}
		// A key that is read as a side key is one.
		if kind, n, ok := nameOf(name); ok && sideKey(kind, n) != name {
			t.Errorf("%q is taken for the %s of %q", name, kind, n)
		}
	})
}

// FuzzWakes tests the messages of an inbox, to which others may write.
func FuzzWakes(f *testing.F) {
	for _, text := range []string{"", "t", "t00001794740038819640v", "n00000000000000000000v", "x00001794740038819640v", "t99999999999999999999v", "t00001794740038819640r\x00v", "t00001794740038819640s02\x00", "t0000179474003881964\xff\x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		w, ok := parseWake(text)
		if !ok {
			return
		}
		if w.Kind != node.WakeTurn && w.Kind != node.WakeNear && w.Kind != node.WakeCall || w.Value == "" || w.Fence > node.MaxToken || w.Err != nil {
			t.Errorf("%q is read as %+v", text, w)
		}
		if !strings.HasSuffix(text, w.Value) || w.Fence != 0 && !strings.Contains(text, w.Fence.String()) {
			t.Errorf("%q is read as %+v", text, w)
		}
	})
}

// FuzzMarkers tests the marker, a text that every client with the right to
// write can change.
func FuzzMarkers(f *testing.F) {
	f.Add("3 dd4b68befc31fa69359eaf9de7af049cd651e0ab 00000007 8fd65869eaf57c00 2000 500000 2133 1 2000 1794740042136691 changed 2 0d0c0b0a 0a1b2c3d:4 member - 2133 redis://a:1 redis://b:2", int64(30000), int64(10_000_000))
	f.Add("3 a 1 b 1 2 3 4 5 6 new 1 0 - told a\tb 0 ", int64(1), int64(1))
	f.Add("1 a b 1 2 3 4 new c", int64(0), int64(0))
	f.Add("3 a 1 b -1 9223372036854775807 3 4 5 6 new 1 0 - member - 1 c", int64(10), int64(1000))
	f.Fuzz(func(t *testing.T, text string, ttl, window int64) {
		if m := parseMarker(text); m != nil {
			if g := m.guard; g.MaxTTL < 0 || g.Window < 0 || g.Quarantine < 0 || g.Replicas < 0 || g.ReplicaLag < 0 || !strings.HasSuffix(text, " "+g.Nodes) {
				t.Errorf("%q is read as %+v", text, g)
			}
		}
		// A marker that was written is read again.
		const most = int64(30 * 24 * time.Hour / time.Millisecond)
		if ttl < 0 || ttl > most || window < 0 || window > most || strings.ContainsAny(text, "\n") {
			return
		}
		g := &node.Guard{Membership: "8fd65869eaf57c00", Nodes: text, Generation: 7, MaxTTL: time.Duration(ttl) * time.Millisecond,
			Window: time.Duration(window) * time.Microsecond, Quarantine: time.Duration(ttl) * time.Millisecond,
			Replicas: int(ttl % 7), ReplicaLag: time.Duration(window) * time.Millisecond}
		marker := "3 dd4b68befc31fa69359eaf9de7af049cd651e0ab 00000009 " + config(g) + " 1794740042136691 membership 7 0d0c0b0a 0a1b2c3d:4 member - 2133 " + text
		if again := parseMarker(marker); again == nil || again.guard != *g || again.reason != "membership" || again.epoch != 9 || again.lineage != "0d0c0b0a" || again.epochs.Of("0a1b2c3d") != 4 {
			t.Errorf("%+v is written as %q, and that read as %+v", g, marker, again)
		}
	})
}

// olderError is what Redis 6.2 answers if a command in a script is refused.
const olderError = "ERR Error running script (call to f_2b08): @user_script:78: @user_script: 78: -OOM command not allowed when used memory > 'maxmemory'."

// TestErrorWithinAScriptHasTheCodeOfItsCommand reads the errors of Redis 6.2.
func TestErrorWithinAScriptHasTheCodeOfItsCommand(t *testing.T) {
	for text, want := range map[string]string{
		olderError:                             "OOM",
		strings.TrimPrefix(olderError, "ERR "): "OOM", // a driver may cut it off
		"ERR Error running script (call to f_2b08): @user_script:7: bad argument": "ERR",
		"ERR unknown command": "ERR",
	} {
		if e := NewServerError(text); e.Code != want || errors.Is(e, node.ErrUnsent) != (want == "OOM" || !strings.Contains(text, "user_script")) {
			t.Errorf("%q has the code %s, and had no effect: %v; want %s", text, e.Code, errors.Is(e, node.ErrUnsent), want)
		}
	}
}

// FuzzServerErrors tests the text of a server's error.
func FuzzServerErrors(f *testing.F) {
	for _, text := range []string{
		"", "OOM command not allowed", "READONLY x", "err lower", "NOPERM a script: b, on @user_script:46.", " ", "\xff", "MOVED 1 a:1",
		"The user executing the script can't run this command or subcommand script: 2b08, on @user_script:46.",
		"ERR ACL failure in script: User locks has no permissions to run the 'zrange' command script: on @user_script:373.",
		olderError,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e := NewServerError(text)
		if e.Text != text || strings.Contains(e.Code, " ") || e.Code != strings.ToUpper(e.Code) {
			t.Errorf("%q is %+v", text, e)
		}
		if h := e.Hint(); h != "" && !strings.HasSuffix(e.Error(), " ("+h+")") || !strings.HasPrefix(e.Error(), text) {
			t.Errorf("%q is shown as %q", text, e)
		}
		// Only an error of a request that certainly had no effect may say so.
		if e.Forbidden() && strings.Contains(text, "user_script") && errors.Is(e, node.ErrUnsent) {
			t.Errorf("%q is said to have had no effect", text)
		}
	})
}
