package docs_test

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// row is a scenario of the catalogue.
type row struct {
	line  int
	title string
	tests []test
}

// test is a test as the catalogue names it.
type test struct{ folder, name string }

func (t test) String() string { return t.folder + "." + t.name }

// columns are the head of every table of the catalogue.
const columns = "| failure | what a user sees | what holds | tests |"

var (
	titleForm = regexp.MustCompile(`^\*\*([^*]+)\*\*`)
	groupForm = regexp.MustCompile("^(?:`([a-z0-9/]+)`: )?(`Test[A-Za-z0-9]+`(?:, `Test[A-Za-z0-9]+`)*)$")
)

// readCatalogue returns the rows of the catalogue's tables, and what is wrong
// with them.
func readCatalogue(text string) (rows []row, wrong []string) {
	n, inTable := 0, false
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(line, "|"):
			inTable = false
		case !inTable:
			inTable = true
			if line != columns {
				wrong = append(wrong, fmt.Sprintf("line %d: the head of the table is %s", n, line))
			}
		case strings.HasPrefix(line, "|---"):
		default:
			r, err := readRow(line)
			r.line = n
			if err != nil {
				wrong = append(wrong, fmt.Sprintf("line %d: %v", n, err))
			}
			rows = append(rows, r)
		}
	}
	return rows, wrong
}

func readRow(line string) (row, error) {
	cells := strings.Split(strings.Trim(line, "|"), "|")
	if len(cells) != 4 {
		return row{}, fmt.Errorf("it has %d cells, want 4", len(cells))
	}
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	title := titleForm.FindStringSubmatch(cells[0])
	if title == nil {
		return row{}, fmt.Errorf("%q does not begin with a name in bold", cells[0])
	}
	r := row{title: title[1]}
	if cells[1] == "" || cells[2] == "" {
		return r, fmt.Errorf("%s does not say what a user sees and what holds", r.title)
	}
	if cells[3] == "" {
		return r, fmt.Errorf("%s has no test", r.title)
	}
	for group := range strings.SplitSeq(cells[3], "; ") {
		parts := groupForm.FindStringSubmatch(group)
		if parts == nil {
			return r, fmt.Errorf("the tests of %s are %q, which is not of the form `folder`: `TestA`, `TestB`", r.title, group)
		}
		for name := range strings.SplitSeq(parts[2], ", ") {
			r.tests = append(r.tests, test{parts[1], strings.Trim(name, "`")})
		}
	}
	return r, nil
}

// tree is the source that tests are looked for in.
type tree struct {
	root string
	seen map[string]map[string]error // by folder, what testsIn returned
}

func newTree(root string) *tree { return &tree{root, map[string]map[string]error{}} }

// check returns what is wrong with a catalogue: rows without a test, tests that
// are not there or do not run on Linux, and scenarios that are missing.
func (tr *tree) check(text string, scenarios []string) []string {
	rows, wrong := readCatalogue(text)
	titles := map[string]bool{}
	for _, r := range rows {
		if titles[r.title] {
			wrong = append(wrong, fmt.Sprintf("line %d: %s is there twice", r.line, r.title))
		}
		titles[r.title] = true
	}
	for _, s := range scenarios {
		if !titles[s] {
			wrong = append(wrong, "there is no row for: "+s)
		}
	}
	for _, r := range rows {
		for _, t := range r.tests {
			if tr.seen[t.folder] == nil {
				tr.seen[t.folder] = testsIn(filepath.Join(tr.root, filepath.FromSlash(t.folder)))
			}
			if err, found := tr.seen[t.folder][t.name]; !found {
				wrong = append(wrong, fmt.Sprintf("line %d: there is no test %v", r.line, t))
			} else if err != nil {
				wrong = append(wrong, fmt.Sprintf("line %d: %v: %v", r.line, t, err))
			}
		}
	}
	return wrong
}

// testsIn returns the test functions of a folder, each with the reason for
// which it does not run, if there is one.
func testsIn(dir string) map[string]error {
	tests := map[string]error{}
	files, _ := os.ReadDir(dir)
	linux := build.Default
	linux.GOOS, linux.GOARCH, linux.CgoEnabled = "linux", "amd64", true
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		source, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, f.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			continue // the compiler will say so
		}
		if ok, err := linux.MatchFile(dir, f.Name()); !ok || err != nil {
			err = fmt.Errorf("%s is not built on Linux", f.Name())
			for _, name := range testFunctions(source) {
				tests[name] = err
			}
			continue
		}
		err = nil
		if skips(source) {
			err = fmt.Errorf("%s skips tests for another reason than testing.Short", f.Name())
		}
		for _, name := range testFunctions(source) {
			tests[name] = err
		}
	}
	return tests
}

// testFunctions returns the names of the functions that go test runs.
func testFunctions(source *ast.File) (names []string) {
	for _, d := range source.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") || len(f.Type.Params.List) != 1 {
			continue
		}
		if star, ok := f.Type.Params.List[0].Type.(*ast.StarExpr); ok && isCall(star.X, "testing", "T") {
			names = append(names, f.Name.Name)
		}
	}
	return names
}

// skips reports whether a file skips tests other than under testing.Short.
func skips(source *ast.File) (found bool) {
	ast.Inspect(source, func(n ast.Node) bool {
		if f, ok := n.(*ast.IfStmt); ok {
			if call, ok := f.Cond.(*ast.CallExpr); ok && isCall(call.Fun, "testing", "Short") {
				if f.Else != nil {
					found = found || skips(&ast.File{Name: source.Name, Decls: []ast.Decl{
						&ast.FuncDecl{Name: source.Name, Type: &ast.FuncType{}, Body: &ast.BlockStmt{List: []ast.Stmt{f.Else}}}}})
				}
				return false
			}
		}
		if call, ok := n.(*ast.CallExpr); ok {
			if s, ok := call.Fun.(*ast.SelectorExpr); ok && (s.Sel.Name == "Skip" || s.Sel.Name == "Skipf" || s.Sel.Name == "SkipNow") {
				found = true
			}
		}
		return !found
	})
	return found
}

// isCall reports whether an expression is what.name.
func isCall(e ast.Expr, what, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == what
}
