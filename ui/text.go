package ui

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// segment is a piece of a text that others wrote. Odd is one that cannot be
// seen as it is, and is shown by its code.
type segment struct {
	Text string
	Odd  bool
}

// maxMarks is how many combining marks may follow each other. More of them
// would cover the lines above and below.
const maxMarks = 4

// visible returns a text in pieces that show all of it: characters that are
// invisible, or change the direction or the place of others, become codes. So
// no two texts look alike that differ in such characters alone.
func visible(s string) []segment {
	var all []segment
	marks, begun := 0, 0 // begun is where the piece begins that is shown as it is
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if unicode.Is(unicode.M, r) {
			marks++
		} else {
			marks = 0
		}
		code := ""
		switch {
		case r == utf8.RuneError && size == 1:
			code = fmt.Sprintf("⟨%02X⟩", s[i])
		case !seen(r) || marks > maxMarks:
			code = fmt.Sprintf("⟨U+%04X⟩", r)
		}
		if code != "" {
			all = append(all, segment{Text: s[begun:i]}, segment{code, true})
			begun = i + size
		}
		i += size
	}
	return append(all, segment{Text: s[begun:]})
}

// seen reports whether a character can be seen as it is.
func seen(r rune) bool {
	const brailleBlank = '\u2800'
	return unicode.IsPrint(r) && r != brailleBlank &&
		!unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// visibleText is visible as one text, for where there is no markup.
func visibleText(s string) string {
	var b strings.Builder
	for _, part := range visible(s) {
		b.WriteString(part.Text)
	}
	return b.String()
}

// plainWord matches what a shell takes as it is.
var plainWord = regexp.MustCompile(`^[-a-zA-Z0-9_./:@%+,=]+$`)

// shellWord returns a text as one word for a POSIX shell. What cannot be seen is
// written as octal codes, so that the word can be read before it is run, in the
// form $'…', which bash, zsh and ksh know.
func shellWord(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	var b strings.Builder
	unseen := false
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		part := s[i : i+size]
		i += size
		switch {
		case r == '\'' || r == '\\':
			b.WriteString(`\` + part)
		case seen(r) && (r != utf8.RuneError || size > 1):
			b.WriteString(part)
		default:
			unseen = true
			for _, c := range []byte(part) {
				fmt.Fprintf(&b, `\%03o`, c)
			}
		}
	}
	if unseen {
		return "$'" + b.String() + "'"
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// spell is a duration in one or two units. The page's script writes the same.
func spell(d time.Duration) string {
	s := int64(d / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%d s", max(s, 0))
	case s < 3600:
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	case s < 24*3600:
		return fmt.Sprintf("%d h %d min", s/3600, s/60%60)
	}
	return fmt.Sprintf("%d d %d h", s/86400, s/3600%24)
}

// millis is a short duration in milliseconds, with two digits that matter.
func millis(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch abs := max(ms, -ms); {
	case abs < 9.95:
		return fmt.Sprintf("%.1f ms", ms)
	case abs < 10000:
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.1f s", ms/1000)
}

// count is a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
