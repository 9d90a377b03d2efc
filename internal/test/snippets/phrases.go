package snippets

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
)

// phrases are wordings that readers had to translate, each with a better one.
// They are looked for in the documentation, and in the strings and comments of
// Go files. A %s stands for what differs from one use to the next.
var phrases = compile([][2]string{
	{`no lock can be had`, "locks are unavailable"},
	{`locks are had`, "working; no further failure tolerated"},
	{`can be had|may be had|is had|be had`, "is available, gets"},
	{`only %s of %s( nodes)? can be read`, "0 of 3 nodes reachable; quorum is 2"},
	{`needs %s of %s nodes`, `cannot acquire "x": no quorum (2 of 3 needed)`},
	{`in quarantine for %s yet`, "quarantined for another 30s"},
	{`for %s yet`, "another 30s, 30s left"},
	{`it is new or has lost its data`, "new, or lost its data"},
	{`no answer yet when the round was settled`, "no reply in time"},
	{`request was not sent`, "could not connect"},
	{`is %s: it must be`, "must be between A and B, must be one of"},
	{`it must be the list that`, "membership differs from the one on X"},
	{`it must be a text that`, "invalid handle"},
	{`it must be a node that can be marked`, "a local file needs no init"},
	{`it must be another`, "duplicate address"},
	{`it must be from`, "must be between A and B"},
	{`waiting until %s nodes are trusted`, "waiting for 3 nodes (32s left)"},
	{`there is no terminal to ask`, "not a terminal; pass --yes"},
	{`is done already`, "already completed"},
	{`the lock was lost before`, "lock no longer held"},
	{`held by nobody`, "not held"},
	{`will run out|runs out|ran out`, "expires"},
	{`stood still|stand still|stands still`, "was paused"},
	{`too late to be of use`, "too late: no validity left"},
	{`no longer the leader, and waits`, "lost leadership; campaigning again"},
	{`too few nodes for an election`, "no quorum; waiting to campaign"},
	{`those who wait`, "waiters"},
	{`those who`, "name them"},
	{`clock is not with the others'`, "clock differs from the majority"},
	{`no other node is the same one`, "duplicate-server check skipped"},
	{`whoever`, "name who"},
	{`have sat out|sits out|sit out`, "until quarantine ends"},
	{`when it is away no lock`, "single point of failure"},
	{`one too many`, "another failure may lose the quorum"},
	{`of being told`, "waiters poll"},
	{`so are those who held`, "holders are gone too"},
	{`how it is told`, "output: text, json"},
	{`is told|are told|be told|was told`, "is notified, gets"},
	{`by somebody who gave up`, "by an abandoned attempt"},
	{`^(fits|so|do): ?$`, "suggested, impact, fix"},
	{`(\d+|%d) fine`, "26 checks passed"},
	{`CMD has ended with`, "command exited with status 3"},
	{`the lock is acquired`, "lock acquired"},
	{`interrupt while waiting for the lock`, "interrupted while waiting"},
	{`nothing runs on`, "the lock is not renewed automatically"},
	{`how far clocks may be apart`, "maximum clock skew"},
	{`take a lock away from`, "force-release a lock"},
	{`print what a shell needs`, "print the shell completion script"},
	{`give a lock its whole time to live`, "extend a lock by its TTL"},
	{`take a lock that outlives`, "acquire a lock and print its handle"},
	{`look for what endangers locks`, "check the servers and suggest settings"},
	{`(\d+|%d) waited for`, "4 contended"},
	{`(?-i:Lately)|lately[.,]`, "recent events"},
	{`nobody watched for`, "not recording for 31 s"},
	{`changes more at the same`, "15 more changes"},
	{`no node names a holder`, "not held"},
	{`what each node says`, "per-node state"},
	{`no lock is held or waited for`, "no locks"},
	{`node and health`, "node"},
	{`what it has, beside others`, "comparison"},
	{`or so many slots`, "read/write locks and semaphores"},
	{`then it is done on another`, "without blocking the node's goroutine"},
	{`a chancy clock`, "a deterministic clock"},
	{`writes a way down`, "prints a trace"},
	{`who has it takes`, "the holder makes"},
	{`numbers as multiples of others`, "the median ratio"},
})

type phrase struct {
	begins  []string // one of them begins every match, in lower case
	form    *regexp.Regexp
	instead string
}

// in reports whether a text in lower case may have the phrase. It is far quicker
// than the expression.
func (p *phrase) in(lower string) bool {
	return slices.ContainsFunc(p.begins, func(b string) bool { return strings.Contains(lower, b) })
}

// begins returns texts of which one begins every match of an expression. whole says
// that a match of it is one of them and nothing else.
func begins(re *syntax.Regexp) (all []string, whole bool) {
	switch re.Op {
	case syntax.OpLiteral:
		return []string{string(re.Rune)}, true
	case syntax.OpCapture:
		return begins(re.Sub[0])
	case syntax.OpEmptyMatch, syntax.OpBeginText:
		return []string{""}, true
	case syntax.OpAlternate, syntax.OpQuest:
		whole = true
		for _, sub := range re.Sub {
			b, w := begins(sub)
			all, whole = append(all, b...), whole && w
		}
		if re.Op == syntax.OpQuest {
			all = append(all, "")
		}
		return all, whole
	case syntax.OpConcat:
		all = []string{""}
		for _, sub := range re.Sub {
			var longer []string
			more, whole := begins(sub)
			for _, a := range all {
				for _, m := range more {
					longer = append(longer, a+m)
				}
			}
			if all = longer; !whole || len(all) > 30 {
				return all, false
			}
		}
		return all, true
	}
	return []string{""}, false
}

func compile(table [][2]string) (all []phrase) {
	for _, row := range table {
		form := strings.ReplaceAll(row[0], "%s", `\S+`)
		parsed, err := syntax.Parse(strings.ToLower(form), syntax.Perl)
		if err != nil {
			panic(err)
		}
		first, _ := begins(parsed)
		if !strings.HasPrefix(form, "^") {
			form = `(^|\W)(` + form + `)(\W|$)`
		}
		all = append(all, phrase{first, regexp.MustCompile("(?i)" + form), row[1]})
	}
	return all
}

// Phrases returns an error for each phrase in a text that has a better wording.
func Phrases(where, text string) []error {
	return find(phrases, where, strings.Join(strings.Fields(text), " "))
}

func find(table []phrase, where, text string) []error {
	lower := strings.ToLower(text)
	var wrong []error
	for _, p := range table {
		if !p.in(lower) {
			continue
		}
		for _, found := range p.form.FindAllString(text, -1) {
			wrong = append(wrong, fmt.Errorf("%s: %q: write: %s", where, strings.TrimSpace(found), p.instead))
		}
	}
	return wrong
}

// GoText returns the strings and the comments of a Go file, by file:line.
// Strings that are added to each other are one, with … for what lies between.
func GoText(name string, source []byte) (texts, comments map[string]string, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, err
	}
	where := func(n ast.Node) string {
		p := files.Position(n.Pos())
		return fmt.Sprintf("%s:%d:%d", p.Filename, p.Line, p.Column)
	}
	texts, comments = map[string]string{}, map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BinaryExpr:
			if text, ok := joined(n); ok {
				texts[where(n)] = text
				return false
			}
		case *ast.BasicLit:
			if text, ok := joined(n); ok {
				texts[where(n)] = text
			}
		}
		return true
	})
	for _, c := range file.Comments {
		comments[where(c)] = c.Text()
	}
	return texts, comments, nil
}

// joined returns the text of an expression that adds strings, if one of them is
// a literal.
func joined(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, err := strconv.Unquote(e.Value)
			return text, err == nil
		}
	case *ast.BinaryExpr:
		left, one := joined(e.X)
		right, two := joined(e.Y)
		return left + right, e.Op == token.ADD && (one || two)
	}
	return "…", false
}
