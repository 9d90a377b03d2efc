package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/check"
)

// notForUsers are folders with no package that users of locks import. Packages
// for authors of stores are among them: their example is examples/store.
var notForUsers = []string{"internal", "testdata", ".git", ".github", "cmd", "examples", "test", "packaging", "docs", "build", "bin", "node", "casnode"}

// entryTypes are types whose methods users begin with.
var entryTypes = []string{"Client", "Lease", "Leases", "Admin"}

// TestEveryEntryPointHasAnExample looks for functions that users call, and no
// example of their package does. Options are left out: functions whose names
// begin with With.
func TestEveryEntryPointHasAnExample(t *testing.T) {
	count := 0
	check.Must(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		folder, _ := filepath.Rel("..", path)
		if slices.Contains(notForUsers, d.Name()) {
			return filepath.SkipDir
		}
		if folder == "store/redis" { // for drivers
			return nil
		}
		entries, shown := entriesOf(t, path)
		for _, name := range entries {
			_, method, _ := strings.Cut(name, ".")
			if count++; !shown[name] && (method == "" || !shown[method]) {
				t.Errorf("%s: no example calls %s", folder, name)
			}
		}
		return nil
	}))
	if count < 80 {
		t.Errorf("found %d entry points: this looked in the wrong place", count)
	}
}

// entriesOf returns the entry points of a package, as Name and Type.Name, and
// what the files of its examples call.
func entriesOf(t *testing.T, folder string) (entries []string, shown map[string]bool) {
	t.Helper()
	shown = map[string]bool{}
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	check.Must(t, err)
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		check.Must(t, err)
		if file.Name.Name == "main" {
			continue
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			switch {
			case !ok:
			case strings.HasSuffix(path, "_test.go"):
				if strings.HasPrefix(filepath.Base(path), "example") {
					calls(f, shown)
				}
			case !f.Name.IsExported() || strings.HasPrefix(f.Name.Name, "With"):
			case f.Recv == nil:
				entries = append(entries, f.Name.Name)
			default:
				if of := typeName(f.Recv.List[0].Type); slices.Contains(entryTypes, of) {
					entries = append(entries, of+"."+f.Name.Name)
				}
			}
		}
	}
	return entries, shown
}

// calls notes the names that a function calls or passes on.
func calls(f *ast.FuncDecl, names map[string]bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			names[s.Sel.Name] = true
		}
		return true
	})
}
