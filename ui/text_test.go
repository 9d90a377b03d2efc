package ui

import (
	"os/exec"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestWhatCannotBeSeenIsShownByItsCode(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "deploy/frontend": "deploy/frontend", "<b>&\"'": "<b>&\"'", "a\u202eb": "a⟨U+202E⟩b", "a\u200b\u2060\ufeffb": "a⟨U+200B⟩⟨U+2060⟩⟨U+FEFF⟩b",
		"\u2066x\u2069": "⟨U+2066⟩x⟨U+2069⟩", "a\u00a0b\u2028": "a⟨U+00A0⟩b⟨U+2028⟩",
		"soft\u00adhyphen": "soft⟨U+00AD⟩hyphen", "heart\ufe0f": "heart⟨U+FE0F⟩",
		"a\tb\nc\x1b[31m\x00":     "a⟨U+0009⟩b⟨U+000A⟩c⟨U+001B⟩[31m⟨U+0000⟩",
		"bad \xff utf-8 \xe2\x80": "bad ⟨FF⟩ utf-8 ⟨E2⟩⟨80⟩",
		"\ufffd":                  "\ufffd", "filler\u3164\u115f\u2800": "filler⟨U+3164⟩⟨U+115F⟩⟨U+2800⟩", "tag\U000e0041": "tag⟨U+E0041⟩", "private\ue000": "private⟨U+E000⟩",
		"e\u0301 é ü 漢字 עברית عربى":       "e\u0301 é ü 漢字 עברית عربى",
		"z" + strings.Repeat("\u0300", 6): "z" + strings.Repeat("\u0300", 4) + "⟨U+0300⟩⟨U+0300⟩",
	} {
		if got := visibleText(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

// shellNames are names that a shell could misunderstand.
var shellNames = []string{
	"plain", "a b", "it's", `"quoted"`, "$HOME", "`id`", "$(id)", "a;b", "a&b", "a|b", "*", "?", "[a]", "~", "~root", "#x", "!x", "{a,b}",
	`back\slash`, `end\`, "-rf", "--yes", "", " ", "a\u202eb", "a\u200bb'c\\d", "a\u200b\\n", "漢字", "עברית", "tab\there", "\x80\xff", "%s", "a=b", "=", "^x", "\U0001f512",
}

func TestTheCommandIsOneWordForAShell(t *testing.T) {
	t.Parallel()
	shells := []string{}
	for _, s := range []string{"bash", "zsh", "ksh"} {
		if _, err := exec.LookPath(s); err == nil {
			shells = append(shells, s)
		}
	}
	if len(shells) == 0 {
		t.Fatal("this test needs bash")
	}
	for _, name := range shellNames {
		word := shellWord(name)
		for _, r := range word {
			if !seen(r) {
				t.Errorf("the word for %q has %U in it, which cannot be seen", name, r)
			}
		}
		for _, shell := range shells {
			out, err := exec.Command(shell, "-c", "printf '%s\\n' "+word+" end").Output()
			if want := name + "\nend\n"; err != nil || string(out) != want {
				t.Errorf("%s makes of %s: %q, %v, want %q", shell, word, out, err, want)
			}
		}
	}
}

func FuzzVisible(f *testing.F) {
	for _, name := range shellNames {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text := visibleText(s)
		if !utf8.ValidString(text) {
			t.Errorf("%q is shown as %q, which is not UTF-8", s, text)
		}
		for _, r := range text {
			if !seen(r) {
				t.Errorf("%q is shown with %U", s, r)
			}
		}
		for _, r := range shellWord(s) {
			if !seen(r) {
				t.Errorf("the word for %q has %U in it", s, r)
			}
		}
		if m := fill("%", s); strings.ContainsAny(string(m), `<>"'`) {
			t.Errorf("%q becomes %q", s, m)
		}
	})
}

func TestDurationsAreSpelt(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 0: "0 s", 1900 * time.Millisecond: "1 s", 61 * time.Second: "1 min 1 s", time.Hour: "1 h 0 min", 49*time.Hour + time.Minute: "2 d 1 h",
	} {
		if got := spell(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		400 * time.Microsecond: "0.4 ms", 12 * time.Millisecond: "12 ms", -3 * time.Millisecond: "-3.0 ms", 12 * time.Second: "12.0 s",
	} {
		if got := millis(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
