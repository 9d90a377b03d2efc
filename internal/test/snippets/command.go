package snippets

import "strings"

// Commands splits a script into commands, each into its words, as far as needed
// to see which commands it runs with which flags: quotes, comments, continued
// lines, substitutions, and the script in sh -c 'script'. Variables are not
// expanded. The script must be one that the shell itself can parse.
func Commands(script string) [][]string {
	l := &lexer{in: []rune(strings.ReplaceAll(script, "\\\n", " "))}
	l.run(0)
	var all [][]string
	for _, words := range l.commands {
		all = append(all, words)
		for i, w := range words {
			if w == "-c" && i+1 < len(words) {
				all = append(all, Commands(words[i+1])...)
			}
		}
	}
	return all
}

// Arguments returns the arguments of each run of our program in a script, also
// through another command or within another run of it.
func Arguments(program, script string) [][]string {
	var all [][]string
	for _, words := range Commands(script) {
		for i, w := range words {
			if w == program || w == "./cmd/"+program {
				all = append(all, words[i+1:])
			}
		}
	}
	return all
}

type lexer struct {
	in       []rune
	at       int
	commands [][]string
}

// run reads commands until the script, or the substitution that closes with
// the given rune, ends.
func (l *lexer) run(closing rune) {
	var words []string
	var word strings.Builder
	begun, quoted := false, false // a word; double quotes, where substitutions still count
	endWord := func() {
		if begun {
			words = append(words, word.String())
		}
		word.Reset()
		begun = false
	}
	endCommand := func() {
		endWord()
		if len(words) > 0 {
			l.commands = append(l.commands, words)
		}
		words = nil
	}
	defer endCommand()
	for l.at < len(l.in) {
		r := l.in[l.at]
		l.at++
		switch {
		case r == closing && closing != 0 && !quoted:
			return
		case r == '\\':
			if l.at < len(l.in) {
				word.WriteRune(l.in[l.at])
				l.at++
			}
			begun = true
		case r == '"':
			begun, quoted = true, !quoted
		case r == '`', r == '$' && l.at < len(l.in) && l.in[l.at] == '(':
			begun = true
			l.substitution(r, &word)
		case quoted:
			word.WriteRune(r)
		case r == '\'':
			begun = true
			for ; l.at < len(l.in) && l.in[l.at] != '\''; l.at++ {
				word.WriteRune(l.in[l.at])
			}
			l.at++
		case r == '#' && !begun:
			for l.at < len(l.in) && l.in[l.at] != '\n' {
				l.at++
			}
		case strings.ContainsRune(" \t", r):
			endWord()
		case strings.ContainsRune("\n;|&(){}", r) && (!strings.ContainsRune("{}", r) || !begun):
			endCommand()
		default:
			begun = true
			word.WriteRune(r)
		}
	}
}

// substitution reads $(…) or `…`, whose commands are commands of their own.
func (l *lexer) substitution(opened rune, word *strings.Builder) {
	closing := '`'
	if opened == '$' {
		l.at++
		closing = ')'
	}
	word.WriteString("$()")
	l.run(closing)
}
