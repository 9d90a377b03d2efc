package snippets

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// packages are those that a fragment may use without an import.
var packages = map[string]string{
	"context": "context", "errors": "errors", "fmt": "fmt", "http": "net/http", "log": "log", "os": "os",
	"slog": "log/slog", "sql": "database/sql", "testing": "testing", "time": "time",
	"redlatch": "github.com/redlatch/redlatch",
	"fence":    "github.com/redlatch/redlatch/fence",
	"goredis":  "github.com/redlatch/redlatch/store/redis/goredis",
	"memory":   "github.com/redlatch/redlatch/store/memory",
	"node":     "github.com/redlatch/redlatch/node",
	"nodetest": "github.com/redlatch/redlatch/node/nodetest",
	"direct":   "github.com/redlatch/redlatch/store/redis/direct",
	"rueidis":  "github.com/redlatch/redlatch/store/redis/rueidis",
	"sqlite":   "github.com/redlatch/redlatch/store/sqlite",
	"ui":       "github.com/redlatch/redlatch/ui",
}

// given are the variables that statements may use without declaring them: the
// text around a fragment introduces them.
const given = "ctx context.Context, locks *redlatch.Client, lease *redlatch.Lease, nodes []redlatch.Node, token redlatch.Token, db *sql.DB"

// checkFragments vets each fragment as a package of its own. The package is
// outside the module, whose folders stay unchanged, and is built as if it were
// inside.
func checkFragments(root string, fragments []Block) []error {
	if len(fragments) == 0 {
		return nil
	}
	dir, err := os.MkdirTemp("", "snippets")
	if err != nil {
		return []error{err}
	}
	defer os.RemoveAll(dir)
	var wrong []error
	for i, b := range fragments {
		src, err := wrap(b)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		file := filepath.Join(dir, fmt.Sprintf("fragment%d.go", i))
		if err := os.WriteFile(file, []byte(src), 0o644); err != nil {
			return append(wrong, err)
		}
		// The return after it may be unreachable.
		cmd := exec.Command("go", "vet", "-unreachable=false", file)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: go vet: %w\n%s", b.Where(), err, bytes.TrimSpace(out)))
		}
	}
	return wrong
}

// wrap turns a fragment into a file. The fragment is a whole file,
// declarations, or statements. Line comments make errors name the line in the
// documentation.
func wrap(b Block) (string, error) {
	line := fmt.Sprintf("//line %s:%d\n", b.File, b.Line+1)
	fset := token.NewFileSet()
	if _, err := parser.ParseFile(fset, "", b.Text, 0); err == nil {
		return line + b.Text, nil
	}
	if f, err := parser.ParseFile(fset, "", "package p\n"+b.Text, 0); err == nil {
		return "package p\n" + imports(f, "") + line + b.Text, nil
	}
	const head = "package p\nfunc _(" + given + ") (err error) { {\n"
	f, err := parser.ParseFile(fset, "", head+b.Text+"}\nreturn }", 0)
	if err != nil {
		return "", fmt.Errorf("%s: neither a file, nor declarations, nor statements of Go: %w", b.Where(), err)
	}
	// Each variable that a fragment declares is used right behind its statement,
	// on the same line: the fragment itself need not use it.
	body := f.Decls[len(f.Decls)-1].(*ast.FuncDecl).Body.List[0].(*ast.BlockStmt)
	text, shift := b.Text, len(head)
	for _, s := range slices.Backward(body.List) {
		assign, ok := s.(*ast.AssignStmt)
		if !ok || assign.Tok != token.DEFINE {
			continue
		}
		used := ""
		for _, e := range assign.Lhs {
			if id, ok := e.(*ast.Ident); ok && id.Name != "_" {
				used += "; _ = " + id.Name
			}
		}
		end := fset.Position(assign.End()).Offset - shift
		text = text[:end] + used + text[end:]
	}
	return "package p\n" + imports(f, given) + "func _(" + given + ") (err error) {\n{\n" + line + text + "}\nreturn\n}\n", nil
}

// imports returns the import declaration for the packages that a file names.
func imports(f *ast.File, params string) string {
	named := map[string]bool{}
	for _, spec := range f.Imports {
		named[strings.Trim(spec.Path.Value, `"`)] = true
	}
	need := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok {
				if path := packages[id.Name]; path != "" && !named[path] {
					need[path] = true
				}
			}
		}
		return true
	})
	if params != "" {
		need[packages["context"]], need[packages["redlatch"]], need[packages["sql"]] = true, true, true
	}
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(need)) {
		fmt.Fprintf(&b, "import %q\n", path)
	}
	return b.String()
}
