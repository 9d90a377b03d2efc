package ui

import (
	"fmt"
	"html"
	"regexp"
	"strconv"
	"strings"
)

// markup is HTML. A constant of the source becomes markup by itself, and
// nothing else does: every other text passes through fill, which escapes it. So
// what others wrote cannot become HTML, and a test looks for conversions
// elsewhere.
//
// html/template does the same and more. It calls methods by their names, which
// keeps the linker from leaving out what is not used, and makes the command
// two thirds larger.
type markup string

// fill puts arguments into HTML, in place of its percent signs: markup as it
// is, numbers as digits, and texts escaped for an element or a quoted
// attribute. The number of arguments must be that of the signs.
func fill(m markup, args ...any) markup {
	var b strings.Builder
	rest := string(m)
	for _, arg := range args {
		before, after, found := strings.Cut(rest, "%")
		if !found {
			panic("ui: too many arguments for " + string(m))
		}
		b.WriteString(before)
		rest = after
		switch a := arg.(type) {
		case markup:
			b.WriteString(string(a))
		case string:
			b.WriteString(html.EscapeString(a))
		case int:
			b.WriteString(strconv.Itoa(a))
		case int64:
			b.WriteString(strconv.FormatInt(a, 10))
		default:
			panic(fmt.Sprintf("ui: a %T is not shown", arg))
		}
	}
	if strings.Contains(rest, "%") {
		panic("ui: too few arguments for " + string(m))
	}
	b.WriteString(rest)
	return markup(b.String())
}

// join puts pieces behind each other.
func join(all ...markup) markup {
	var b strings.Builder
	for _, m := range all {
		b.WriteString(string(m))
	}
	return markup(b.String())
}

// ports are what a line must not break inside of, in the address of a node.
var ports = regexp.MustCompile(`:[0-9]{1,5}\b`)

// address is a text with addresses in it, as shown has it. A line breaks before a
// port, or behind a plus.
func address(text string) markup {
	return markup(strings.ReplaceAll(ports.ReplaceAllString(string(shown(text)), `<span class="port">$0</span>`), "+", "+<wbr>"))
}

// slots replaces every {{name}} of a page by what the name is for. A page
// is part of the program.
func slots(page string, of func(name string) markup) markup {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(page, "{{")
		b.WriteString(before)
		if !found {
			return markup(b.String())
		}
		name, rest, _ := strings.Cut(after, "}}")
		b.WriteString(string(of(name)))
		page = rest
	}
}
